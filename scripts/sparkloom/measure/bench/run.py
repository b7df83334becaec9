"""A run: for every level a warm-up, the load, the engine's own figures; what is done is kept whatever happens next."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.measure.bench import figures, settings
from sparkloom.measure.bench.depth import GUESS, Depth, prompt, words
from sparkloom.measure.bench.gauges import Gauges
from sparkloom.measure.bench.http1 import Garbled
from sparkloom.measure.bench.loop import Loop
from sparkloom.measure.bench.request import Request
from sparkloom.measure.bench.schedule import Schedule
from sparkloom.measure.bench.settings import Prompts, Settings
from sparkloom.measure.bench.target import Target
from sparkloom.measure.interrupt import interruptible

Say = Callable[[str, Schedule | None], None]
Keep = Callable[["Run"], None]
Site = dict[str, Any]  # with `bounds` and `ceilings` in tokens a second, by the streams of a level


class Run:
    """What has been measured so far."""

    def __init__(self, model: str, planned: int) -> None:
        self.model, self.planned = model, planned
        self.levels: list[dict[str, Any]] = []
        self.signal: int | None = None

    def stop(self, number: int) -> None:
        self.signal = number

    @property
    def complete(self) -> bool:
        return len(self.levels) == self.planned and not any(level["partial"] for level in self.levels)

    def problems(self) -> Iterator[str]:
        """Why the run is not valid; nothing when it is."""
        for level in self.levels:
            where = label(level)
            if level["guard"]["verdict"] == "garbage":
                yield f"{where}: garbage ({level['guard']['kind']}): {level['guard'].get('why', '')}"
            if level["ok"] < level["requests"]:
                errors = ", ".join(f"{count} {kind}" for kind, count in level["errors"].items())
                yield f"{where}: {level['requests'] - level['ok']} of {level['requests']} requests failed: {errors}"
            if any(source == "chunks" for source in level["tokens_from"]):
                yield f"{where}: the engine reported no token counts; chunks were counted instead, a lower bound"
        if len(self.levels) < self.planned:
            yield f"{self.planned - len(self.levels)} of {self.planned} levels were not measured"


def label(level: dict[str, Any]) -> str:
    load = f"rate {level['rate']:g}/s" if level["mode"] == "open" else f"n={level['concurrency']}"
    return load + (f" d={level['depth']}" if level.get("depth") else "")


def served_model(target: Target, wanted: str | None) -> str:
    """The model's name: as wanted, or the only one that is served. InputError when the server cannot be asked."""
    try:
        status, text = target.get("/v1/models")
        data = json.loads(text) if status == 200 else {}
        names = _of_their_own(data.get("data", []))
    except OSError as error:
        message = f"{target.url} does not answer: {error.strerror or error}"
        raise InputError.single("--url", message, rule="no-answer") from None
    except (Garbled, ValueError, KeyError, TypeError, AttributeError) as error:
        status, names = 0, []
        if not wanted:
            message = f"{target.url}/v1/models is no list of models ({error}); --model names one"
            raise InputError.single("--url", message, rule="no-answer") from None
    if status in (401, 403):
        message = f"{target.url} answers {status}: it wants a key (SPARKLOOM_API_KEY, or --api-key-file FILE)"
        raise InputError.single("--url", message, rule="unauthorized")
    if wanted:
        return wanted
    if len(names) == 1:
        return names[0]
    answer = f"serves {', '.join(names)}" if names else f"answers {status} to GET /v1/models"
    raise InputError.single("--model", f"{target.url} {answer}; --model names the one to measure", rule="which-model")


def _of_their_own(listed: list[dict[str, Any]]) -> list[str]:
    """Names without aliases: the router lists a group by its name and by the model's, and `root` names the group."""
    ids = {str(entry["id"]) for entry in listed}
    return [str(entry["id"]) for entry in listed if entry.get("root", entry["id"]) not in ids - {entry["id"]}]


class Bench:
    """Carries out the settings against a target."""

    def __init__(self, what: Settings, target: Target, say: Say, keep: Keep, site: Site) -> None:
        self._what, self._target, self._say, self._keep, self._site = what, target, say, keep, site
        self._prompts: Prompts = settings.asked(what)
        self.run = Run(served_model(target, what.model), len(what.rates or what.streams) * len(what.depths or (0,)))
        self._per_word = GUESS

    def measure(self) -> Run:
        """All levels, or as many as there is time for before Ctrl-C."""
        gauges = Gauges(self._target)
        with interruptible(self.run.stop):
            loop = Loop(self._target)
            try:
                if any(self._what.depths) or self._what.prompt_tokens:
                    self._per_word = self._counted(loop)
                for streams, rate, depth in self._levels():
                    if self.run.signal is None:
                        self._level(loop, gauges, streams, rate, depth)
                        self._keep(self.run)
            finally:
                loop.close()
        return self.run

    def _levels(self) -> Iterator[tuple[int, float | None, Depth]]:
        for tokens in self._what.depths or (0,):
            depth = Depth(tokens, self._what.prefix, self._what.prompt_tokens)
            if self._what.rates:
                yield from ((0, rate, depth) for rate in self._what.rates)
            else:
                yield from ((streams, None, depth) for streams in self._what.streams)

    def _counted(self, loop: Loop) -> float:
        """Tokens of a word, as the engine counts two prompts of different length; a guess where it does not."""
        lengths = (0, 1000)
        short = self._what._replace(max_tokens=2, ignore_eos=False)

        def make(number: int, intended: float) -> Request:
            text = "Say yes." + words(lengths[number], "calibration")
            return Request(number, "calibration", self._message(short, text), intended, guarded=False)

        schedule = Schedule(loop, make, short.limits, len(lengths), lambda: self.run.signal is not None)
        schedule.closed(1)
        counts = [count for request in schedule.requests if (count := figures.prompt_tokens(request)) is not None]
        return max(0.5, (counts[1] - counts[0]) / (lengths[1] - lengths[0])) if len(counts) == len(lengths) else GUESS

    def _level(self, loop: Loop, gauges: Gauges, streams: int, rate: float | None, depth: Depth) -> None:
        warmup = self._warm(loop, streams or 1, depth)
        if self.run.signal is not None:
            return
        total = self._what.requests or streams or 32
        schedule = self._schedule(loop, self._what, total, depth)
        name = f"rate {rate:g}/s" if rate else f"n={streams}"
        name += f" d={depth.tokens}" if depth.tokens else ""
        self._ticking(loop, name, schedule)
        gauges.begin()
        started = time.time()
        if rate:
            schedule.open(rate, self._what.seed, self._what.most_in_flight)
        else:
            schedule.closed(streams)
        row = self._row(schedule, gauges, streams or schedule.most, rate, warmup, started)
        self.run.levels.append({**row, "depth": depth.tokens, "prefix": depth.prefix})
        self._say(name, None)

    def _row(
        self,
        schedule: Schedule,
        gauges: Gauges,
        streams: int,
        rate: float | None,
        warmup: dict[str, Any],
        started: float,
    ) -> dict[str, Any]:
        row = figures.level(
            schedule.requests,
            self._what.max_tokens,
            streams=streams,
            open_loop=rate is not None,
            bound=self._site.get("bounds", {}).get(str(streams)),
            ceiling=self._site.get("ceilings", {}).get(str(streams)),
            tools=self._what.tools,
        )
        requests = row.pop("per_request")
        engine = gauges.end(row["output_tokens"])
        accepted = engine.pop("accept_length")
        return {
            **row,
            "accept_length": accepted,
            "mode": "open" if rate else "closed",
            "rate": rate,
            "most_in_flight": schedule.most,
            "partial": schedule.cut,
            "planned_requests": schedule.total,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "engine": engine,
            "warmup": warmup,
            "per_request": requests,
        }

    def _warm(self, loop: Loop, streams: int, depth: Depth) -> dict[str, Any]:
        """As many streams as the level, short, with prompts of their own; never part of a figure. At a depth one
        request will do: it leaves in the prefix cache what the others share."""
        if not self._what.warmup_tokens:
            return {"requests": 0}
        short = self._what._replace(max_tokens=min(self._what.warmup_tokens, self._what.max_tokens))
        schedule = self._schedule(loop, short, 1 if depth.tokens else streams, depth, warmup=True)
        begun = loop.now()
        self._ticking(loop, f"warm-up of {streams}", schedule)
        schedule.closed(streams)
        good = [request for request in schedule.requests if request.ok]
        errors = sorted({f"{r.error}: {r.detail}" for r in schedule.requests if r.error})
        return {
            "requests": len(schedule.requests),
            "ok": len(good),
            "max_tokens": short.max_tokens,
            "seconds": round(loop.now() - begun, 3),
            "ttft_ms": figures.spread(request.times[0] - request.sent for request in good),
        } | ({"errors": errors} if errors else {})

    def _schedule(self, loop: Loop, what: Settings, total: int, depth: Depth, *, warmup: bool = False) -> Schedule:
        def make(number: int, intended: float) -> Request:
            name, question = self._prompts.pick(number, warmup=warmup)
            asked = prompt(question, depth, what.seed, -1 - number if warmup else number, self._per_word)
            return Request(number, name, self._message(what, asked), intended, guarded=not warmup)

        return Schedule(loop, make, what.limits, total, lambda: self.run.signal is not None)

    def _message(self, what: Settings, text: str) -> bytes:
        body = settings.body(what, self.run.model, text, what.max_tokens)
        return self._target.message("POST", "/v1/chat/completions", body)

    def _ticking(self, loop: Loop, name: str, schedule: Schedule) -> None:
        """A line of progress now and every half second, as long as the schedule runs."""

        def tick() -> None:
            if schedule.ended < schedule.total:
                self._say(name, schedule)
                loop.at(loop.now() + 0.5, tick)

        loop.at(loop.now(), tick)
