"""Stands for an engine: takes a chat with a key, and sends as many bytes as a path names."""

import http.server
import json
import os

KEY, ANSWER = os.environ.get("KEY", ""), os.environ.get("ANSWER", "")


class Engine(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.headers["Authorization"] == f"Bearer {KEY}" and asked["messages"]
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        count = int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        for _ in range(count >> 16):
            self.wfile.write(bytes(1 << 16))


http.server.ThreadingHTTPServer(("", int(os.environ["PORT"])), Engine).serve_forever()
