"""The stand-in's API: shapes that clients parse, numbers that a load test believes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from scripts.oracle import fetch
from tests.testbed.standin import config, precedents, run, served, trouble

HELLO = [{"role": "user", "content": "Why two rails?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        },
    },
}


async def call(base: str, path: str, body: Any = None, key: str = "") -> tuple[int, bytes]:
    """One plain HTTP exchange; chunks joined."""
    url = urlsplit(base)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    data = json.dumps(body).encode() if body is not None else b""
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    verb = "POST" if body is not None else "GET"
    writer.write(
        f"{verb} {path} HTTP/1.1\r\nconnection: close\r\n{auth}content-length: {len(data)}\r\n\r\n".encode() + data
    )
    raw = await reader.read()
    writer.close()
    head, _, rest = raw.partition(b"\r\n\r\n")
    if b"chunked" in head:
        rest = b"".join(re.findall(rb"data: .*\n\n", rest))
    return int(head.split()[1]), rest


async def post(base: str, body: dict[str, Any], path: str = "/v1/chat/completions") -> dict[str, Any]:
    status, data = await call(base, path, body)
    assert status == 200, data
    found: dict[str, Any] = json.loads(data)
    return found


async def events(base: str, body: dict[str, Any], path: str = "/v1/chat/completions") -> list[Any]:
    status, data = await call(base, path, {**body, "stream": True})
    assert status == 200, data
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_stream_begins_with_the_role_thinks_speaks_and_ends_with_usage() -> None:
    async def work() -> None:
        async with served(config(reasoning="nemotron_3")) as (_, base):
            body = {"messages": HELLO, "max_tokens": 40, "stream_options": {"include_usage": True}}
            found = await events(base, body)
            deltas = [event["choices"][0]["delta"] for event in found[:-1]]
            assert deltas[0] == {"role": "assistant", "content": ""}
            kinds = [next(iter(delta)) for delta in deltas[1:-1]]
            assert kinds == ["reasoning_content"] * 10 + ["content"] * 30
            assert found[-2]["choices"][0]["finish_reason"] == "length"
            assert found[-1]["choices"] == []
            assert found[-1]["usage"]["completion_tokens"] == 40
            assert {event["object"] for event in found} == {"chat.completion.chunk"}
            assert len({event["id"] for event in found}) == 1

    run(work())


def test_thinking_is_left_out_when_the_template_is_told_so_or_no_parser_is_set() -> None:
    async def work() -> None:
        async with served(config(reasoning="nemotron_3")) as (_, base):
            off = {"messages": HELLO, "max_tokens": 20, "chat_template_kwargs": {"enable_thinking": False}}
            assert (await post(base, off))["choices"][0]["message"]["reasoning_content"] is None
        async with served(config()) as (_, base):
            answer = await post(base, {"messages": HELLO, "max_tokens": 20})
            assert answer["choices"][0]["message"]["reasoning_content"] is None
            assert answer["choices"][0]["message"]["content"]

    run(work())


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    async def work() -> None:
        async with served(config()) as (_, base):
            said = []
            for seed in (1, 1, 2):
                answer = await post(base, {"messages": HELLO, "max_tokens": 30, "seed": seed})
                said.append(answer["choices"][0]["message"]["content"])
            assert said[0] == said[1] != said[2]

    run(work())


def test_an_answer_ends_by_itself_unless_it_may_not() -> None:
    async def work() -> None:
        async with served(config()) as (_, base):
            free = await post(base, {"messages": HELLO, "max_tokens": 2000})
            bound = await post(base, {"messages": HELLO, "max_tokens": 700, "ignore_eos": True})
            assert free["choices"][0]["finish_reason"] == "stop"
            assert free["usage"]["completion_tokens"] < 700
            assert bound["choices"][0]["finish_reason"] == "length"
            assert bound["usage"]["completion_tokens"] == 700
            word = free["choices"][0]["message"]["content"].split()[7]
            cut = await post(base, {"messages": HELLO, "max_tokens": 2000, "stop": [word]})
            assert word not in cut["choices"][0]["message"]["content"]

    run(work())


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called_with_arguments_that_fit_their_schema(stream: bool) -> None:
    async def work() -> None:
        async with served(config(tools="qwen3_coder")) as (_, base):
            body = {"messages": HELLO, "max_tokens": 300, "tools": [TOOL]}
            if stream:
                found = await events(base, body)
                calls = [c for e in found for c in e["choices"][0]["delta"].get("tool_calls", [])]
                name, finish = calls[0]["function"]["name"], found[-1]["choices"][0]["finish_reason"]
                arguments = "".join(c["function"]["arguments"] for c in calls)
                assert calls[0]["id"].startswith("call_")
            else:
                choice = (await post(base, body))["choices"][0]
                finish, function = choice["finish_reason"], choice["message"]["tool_calls"][0]["function"]
                name, arguments = function["name"], function["arguments"]
            said = json.loads(arguments)
            assert (name, finish) == ("weather", "tool_calls")
            assert isinstance(said["city"], str) and isinstance(said["days"], int) and said["unit"] in "CF"

    run(work())


def test_without_a_tool_parser_tools_are_only_text() -> None:
    async def work() -> None:
        async with served(config()) as (_, base):
            choice = (await post(base, {"messages": HELLO, "max_tokens": 30, "tools": [TOOL]}))["choices"][0]
            assert choice["message"]["tool_calls"] is None and choice["message"]["content"]

    run(work())


def test_completions_stream_text() -> None:
    async def work() -> None:
        async with served(config()) as (_, base):
            whole = await post(base, {"prompt": "Once", "max_tokens": 12}, "/v1/completions")
            found = await events(base, {"prompt": "Once", "max_tokens": 12}, "/v1/completions")
            streamed = "".join(event["choices"][0]["text"] for event in found)
            assert whole["choices"][0]["text"] == streamed
            assert whole["object"] == "text_completion"

    run(work())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "Messages cannot be empty"),
        ({}, "messages: Field required"),
        ({"messages": HELLO, "max_tokens": 5000}, "maximum context length of 4096 tokens"),
        ({"messages": HELLO, "max_tokens": "many"}, "valid integer"),
        ([], "valid dictionary"),
    ],
)
def test_bad_requests_are_refused_as_the_engine_does(body: Any, words: str) -> None:
    async def work() -> None:
        async with served(config()) as (_, base):
            status, data = await call(base, "/v1/chat/completions", body)
            assert status == 400
            assert words in json.loads(data)["message"]

    run(work())


@pytest.mark.parametrize(
    ("engine", "free", "guarded"),
    [
        ("sglang", ("/health", "/health_generate"), ("/v1/models", "/get_model_info")),
        ("vllm", ("/health", "/metrics"), ("/v1/models",)),
        ("llamacpp", ("/health", "/v1/models"), ("/metrics",)),
    ],
)
def test_the_key_guards_what_the_engine_guards(engine: str, free: tuple[str, ...], guarded: tuple[str, ...]) -> None:
    async def work() -> None:
        async with served(config(engine, api_key="s3cret")) as (_, base):
            for path in free:
                assert (await call(base, path))[0] == 200, path
            for path in guarded:
                assert (await call(base, path))[0] == 401, path
                assert (await call(base, path, key="wrong"))[0] == 401, path
                assert (await call(base, path, key="s3cret"))[0] == 200, path

    run(work())


async def _open_stream(base: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(base)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    data = json.dumps({"messages": HELLO, "max_tokens": 3000, "stream": True, "ignore_eos": True}).encode()
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    await reader.readuntil(b'"content": "')
    return reader, writer


async def _until(true: Any) -> None:
    for _ in range(200):
        if true():
            return
        await asyncio.sleep(0.02)
    pytest.fail("did not happen within four seconds")


def test_a_client_that_leaves_stops_its_request() -> None:
    async def work() -> None:
        async with served(config(), speed=50) as (model, base):
            _, writer = await _open_stream(base)
            await _until(lambda: model.meter.running == 1)
            writer.close()
            await _until(lambda: model.meter.running == 0)
            said = model.meter.generated
            await asyncio.sleep(0.2)
            assert model.meter.generated == said
            assert model.meter.aborted == 1

    run(work())


def test_abort_by_the_engines_own_call() -> None:
    async def work() -> None:
        async with served(config(), speed=50) as (model, base):
            reader, _ = await _open_stream(base)
            assert (await call(base, "/abort_request", {"abort_all": True}))[0] == 200
            rest = await reader.readuntil(b"[DONE]")
            assert b'"finish_reason": "abort"' in rest
            assert model.meter.running == 0

    run(work())


def test_more_requests_than_slots_wait_in_the_queue() -> None:
    async def work() -> None:
        async with served(config(max_running=2), speed=50) as (model, base):
            open_ones = [asyncio.create_task(_open_stream(base)) for _ in range(3)]
            await _until(lambda: (model.meter.running, model.meter.queued) == (2, 1))
            for task in open_ones:
                task.cancel()

    run(work())


def test_tokens_come_at_the_measured_pace() -> None:
    async def work() -> None:
        async with served(config(), speed=100) as (_, base):
            began = asyncio.get_running_loop().time()
            await post(base, {"messages": HELLO, "max_tokens": 100, "ignore_eos": True})
            assert asyncio.get_running_loop().time() - began == pytest.approx(1.0, rel=0.15)

    run(work())


NAMES = {
    "sglang": ("sglang/srt", "0.5.12", "num_running_reqs num_queue_reqs token_usage gen_throughput"
               " time_to_first_token_seconds inter_token_latency_seconds e2e_request_latency_seconds cache_hit_rate"),
    "vllm": ("vllm/v1/metrics", "0.19.0", "num_requests_running num_requests_waiting kv_cache_usage_perc"
             " time_to_first_token_seconds inter_token_latency_seconds e2e_request_latency_seconds"),
}  # fmt: skip


@pytest.mark.parametrize("engine", list(NAMES))
def test_metric_names_are_the_releases_own(engine: str) -> None:
    folder, release, names = NAMES[engine]

    async def work() -> str:
        async with served(config(engine, metrics=True)) as (_, base):
            await post(base, {"messages": HELLO, "max_tokens": 5})
            return (await call(base, "/metrics"))[1].decode()

    page = run(work())
    for name in names.split():
        assert re.search(rf"^{engine}:{name}(_count)?{{", page, re.MULTILINE), name
    assert re.search(rf"^{engine}:generation_tokens_total{{.*}} 5$", page, re.MULTILINE)
    if fetch.is_fetched(engine, release):
        source = "".join(p.read_text() for p in (fetch.release_dir(engine, release) / folder).rglob("*.py"))
        for name in re.findall(rf"^# TYPE {engine}:(\w+) ", page, re.MULTILINE):
            assert f'"{engine}:{name.removesuffix("_total")}' in source, name


def test_metrics_are_off_where_the_engine_has_them_off() -> None:
    async def work() -> None:
        async with served(config(metrics=False)) as (_, base):
            assert (await call(base, "/metrics"))[0] == 404
        async with served(config("llamacpp", metrics=False)) as (_, base):
            assert (await call(base, "/metrics"))[0] == 501

    run(work())


async def _broken(kind: str, **settings: Any) -> AsyncIterator[Any]:
    one = trouble.Trouble(kind, **settings)
    async with served(config(), precedent=precedents.Precedent(trouble=one)) as found:
        yield found


def test_garbage_floods_to_the_limit() -> None:
    async def work() -> None:
        async for _, base in _broken("garbage", form="flood", after=5):
            answer = await post(base, {"messages": HELLO, "max_tokens": 200})
            assert answer["choices"][0]["message"]["content"].endswith("!" * 50)

    run(work())


def test_a_failing_engine_answers_errors_and_lives() -> None:
    async def work() -> None:
        async for model, base in _broken("errors", text="RuntimeError: cuDNN is not available."):
            status, data = await call(base, "/v1/chat/completions", {"messages": HELLO})
            assert status == 500 and b"cuDNN" in data
            found = await events(base, {"messages": HELLO})
            assert "cuDNN" in found[-1]["error"]["message"]
            assert (await call(base, "/health"))[0] == 200
            assert model.meter.running == 0

    run(work())


def test_dead_but_healthy() -> None:
    async def work() -> None:
        async for model, base in _broken("dead"):
            assert (await call(base, "/health"))[0] == 200
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(post(base, {"messages": HELLO}), 0.5)
            model.conduct.own.clear()
            await _until(lambda meter=model.meter: meter.running == 0)
            assert (await post(base, {"messages": HELLO, "max_tokens": 3}))["usage"]["completion_tokens"] == 3

    run(work())


def test_vllm_knows_its_model_and_has_its_own_field_for_thoughts() -> None:
    async def work() -> None:
        cfg = config("vllm", reasoning="qwen3", served_name="small")
        async with served(cfg) as (_, base):
            answer = await post(base, {"model": "small", "messages": HELLO, "max_tokens": 20})
            assert answer["choices"][0]["message"]["reasoning"]
            status, data = await call(base, "/v1/chat/completions", {"model": "big", "messages": HELLO})
            assert (status, json.loads(data)["error"]["message"]) == (404, "The model `big` does not exist.")
            assert (await call(base, "/get_model_info"))[0] == 404

    run(work())
