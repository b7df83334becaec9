"""Asks what chat_engine.py answers: a chat with a key and a prompt, or how long some bytes take."""

import json
import sys
import time
import urllib.request

address, what, *words = sys.argv[1:]
if what == "bytes":
    start = time.monotonic()
    with urllib.request.urlopen(f"http://{address}/{words[0]}", timeout=250) as answer:
        while answer.read(1 << 16):
            pass
    print(time.monotonic() - start)
else:
    body = {"model": "it", "messages": [{"role": "user", "content": " ".join(words[1:])}]}
    headers = {"Authorization": f"Bearer {words[0]}", "Content-Type": "application/json"}
    url = f"http://{address}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])
