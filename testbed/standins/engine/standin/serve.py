"""The HTTP API of a rank: what rank 0 serves, and the little that the other ranks answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from standin import metrics, openai, web
from standin.ask import BadRequest
from standin.config import Config
from standin.facts import Facts
from standin.generate import Model
from standin.web import Request

HEALTH_SECONDS = 20  # SGLang gives up on a token after that
OPEN: dict[str, Callable[[str], bool]] = {  # what needs no key, by engine
    "sglang": lambda path: path.startswith(("/health", "/metrics")),
    "vllm": lambda path: not path.startswith("/v1"),
    "trtllm": lambda path: True,
    "llamacpp": lambda path: path in ("/health", "/v1/health", "/models", "/v1/models", "/"),
}
Route = Callable[[Request], Awaitable[None]]


class Server:
    def __init__(self, config: Config, facts: Facts, model: Model) -> None:
        self.config, self.model = config, model
        self.context = config.context or facts.context or 8192
        self.born = int(time.time())
        self.routes: dict[tuple[str, str], Route] = {
            ("GET", "/health"): self.health,
            ("GET", "/v1/models"): self.models,
            ("GET", "/metrics"): self.metrics,
            ("POST", "/v1/chat/completions"): self.chat,
            ("POST", "/v1/completions"): self.completion,
            **self._own_routes(),
        }

    def _own_routes(self) -> dict[tuple[str, str], Route]:
        if self.config.engine == "sglang":
            return {
                ("GET", "/get_model_info"): self.model_info,
                ("GET", "/model_info"): self.model_info,
                ("GET", "/health_generate"): self.health_generate,
                ("GET", "/get_server_info"): self.server_info,
                ("GET", "/server_info"): self.server_info,
                ("POST", "/abort_request"): self.abort,
                ("POST", "/flush_cache"): self.flush,
                ("GET", "/flush_cache"): self.flush,
            }
        return {("GET", "/version"): self.version, ("GET", "/ping"): self.health}

    async def handle(self, request: Request) -> None:
        key = self.config.api_key
        guarded = key and not OPEN[self.config.engine](request.path)
        if guarded and request.headers.get("authorization") != f"Bearer {key}":
            await request.reply(401, self._unauthorized())
            return
        route = self.routes.get((request.method, request.path))
        if route is None:
            known = any(path == request.path for _, path in self.routes)
            await request.reply(405 if known else 404, {"detail": "Method Not Allowed" if known else "Not Found"})
            return
        try:
            await route(request)
        except (BadRequest, ValueError) as problem:
            await request.reply(400, openai.failure_body(self.config, str(problem), 400))

    def _unauthorized(self) -> dict[str, object]:
        if self.config.engine == "llamacpp":
            return {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
        return {"error": "Unauthorized"}

    async def health(self, request: Request) -> None:
        body = {"status": "ok"} if self.config.engine == "llamacpp" else ""
        await request.reply(200, body, web.PLAIN if body == "" else "application/json")

    async def health_generate(self, request: Request) -> None:
        """A token within twenty seconds, or 503."""
        if self.model.conduct.find("dead"):
            await asyncio.sleep(HEALTH_SECONDS)
            await request.reply(503)
            return
        if not await self.model.meets(HEALTH_SECONDS):
            await request.reply(503)
            return
        if not self.model.meter.running:
            await asyncio.sleep(1 / self.model.pace.rate(1))
        await request.reply(200, "", web.PLAIN)

    async def models(self, request: Request) -> None:
        card = {
            "id": self.config.served_name,
            "object": "model",
            "created": self.born,
            "owned_by": self.config.engine,
            "root": self.config.model,
            "parent": None,
            "max_model_len": self.context,
        }
        await request.reply(200, {"object": "list", "data": [card]})

    async def model_info(self, request: Request) -> None:
        model = self.config.model
        await request.reply(200, {"model_path": model, "tokenizer_path": model, "is_generation": True})

    async def server_info(self, request: Request) -> None:
        state = {"last_gen_throughput": self.model.meter.throughput}
        await request.reply(200, {**self.config.values, "internal_states": [state], "version": self.config.release})

    async def version(self, request: Request) -> None:
        await request.reply(200, {"version": self.config.release})

    async def metrics(self, request: Request) -> None:
        if not self.config.metrics:
            missing = {"error": {"message": "This server does not support metrics endpoint. Start it with `--metrics`"}}
            llama = self.config.engine == "llamacpp"
            await request.reply(501 if llama else 404, missing if llama else {"detail": "Not Found"})
        elif self.config.engine == "trtllm":
            await request.reply(200, [])
        else:
            await request.reply(200, metrics.page(self.config, self.model.meter), "text/plain; version=0.0.4")

    async def chat(self, request: Request) -> None:
        await self._speak(request, chat=True)

    async def completion(self, request: Request) -> None:
        await self._speak(request, chat=False)

    async def _speak(self, request: Request, chat: bool) -> None:
        asked = request.json().get("model")
        if self.config.engine == "vllm" and asked and asked != self.config.served_name:
            body = openai.failure_body(self.config, f"The model `{asked}` does not exist.", 404)
            await request.reply(404, body)
            return
        await openai.Speaker(self.config, self.model, self.context, request, chat).answer()

    async def abort(self, request: Request) -> None:
        wanted = request.json()
        for name, job in self.model.jobs.items():
            if wanted.get("abort_all") or name == wanted.get("rid"):
                job.aborted = True
        await request.reply(200)

    async def flush(self, request: Request) -> None:
        await request.reply(200, "Cache flushed.\nPlease check backend logs for more details.\n", web.PLAIN)


async def deaf(request: Request) -> None:
    """What SGLang serves on the other ranks: healthy, whatever happens."""
    here = request.path in ("/health", "/health_generate", "/ping")
    await request.reply(200 if here else 404, "" if here else {"detail": "Not Found"})
