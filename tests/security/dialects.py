"""A stand-in for an engine: four dialects of a stream, an event a token, as vLLM and SGLang write them, then usage."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT = 700


def events(path: str, tokens: int, usage: bool) -> list[dict[str, Any]]:
    words = [f"word{number} " for number in range(tokens)]
    if path == "/v1/messages":
        begun = {"type": "message_start", "message": {"usage": {"input_tokens": PROMPT, "output_tokens": 0}}}
        deltas = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": word}} for word in words]
        return [begun, *deltas, {"type": "message_delta", "usage": {"output_tokens": tokens}}]
    if path == "/v1/responses":
        deltas = [{"type": "response.output_text.delta", "delta": word} for word in words]
        counted = {"input_tokens": PROMPT, "output_tokens": tokens}
        return [*deltas, {"type": "response.completed", "response": {"usage": counted}}]
    told = {"choices": [], "usage": {"prompt_tokens": PROMPT, "completion_tokens": tokens}}
    if path == "/v1/completions":
        deltas = [{"choices": [{"index": 0, "text": word}]} for word in words]
    else:
        deltas = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    return [*deltas, *([told] if usage else [])]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(sent)
        self.server.heard.append(asked)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        try:
            for event in events(self.path, asked.get("max_tokens", 5), usage):
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            pass
        self.close_connection = True


class Dialects:
    """What `running` wants of an engine."""

    key = "sk-own-of-dialects-0123456789"

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.heard = self.heard = []  # type: ignore[attr-defined]
        self.heard: list[dict[str, Any]]
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def down(self) -> None:
        self._server.shutdown()
        self._server.server_close()
