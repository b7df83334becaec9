"""docs/reference/gpu.md: what a run on a GPU told, as tables; nothing in them is typed by hand.

python -m scripts.docs.gpu_page > docs/reference/gpu.md
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("gpu_page.md")
RUN = Path(__file__).parents[2] / "tests/gpu/run.json"
FAULTS = {
    "fault_hang": "a kernel that hangs in the engine's stream (its patience here 40 s; else 100 s)",
    "fault_illegal": "a bad address in the engine's process (Xid 31)",
    "fault_memory": "memory that another process took before the load",
}
Run = dict[str, Any]


def rows(lines: list[list[object]]) -> str:
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def plain(text: str, most: int = 260) -> str:
    """One cell of a table."""
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def off(planned: float, seen: float) -> str:
    return f"{100 * (planned / seen - 1):+.1f} %"


def machine(run: Run) -> str:
    m = run["machine"]
    return (
        f"**{m['date']}**: {m['gpus']} x {m['card']} ({m['memory_mib']} MiB each), driver {m['driver']}, "
        f"torch {m['torch']}, NCCL {m['nccl']}, kernel {m['kernel']}."
    )


def shown(run: Run) -> dict[str, str]:
    """What each test showed, by the words of its name."""
    told: dict[str, str] = {}
    if metrics := run.get("metrics"):
        idle, load = (metrics[name]["ours"] for name in ("idle", "load"))
        told["exporter"] = f"{idle['power_watts']:.0f} W idle, {load['power_watts']:.0f} W at load, as nvidia-smi says"
    if look := run.get("look"):
        told["looks_for_it"] = f"cuInit and a count of devices in {look['seconds']} s"
    if cdi := run.get("cdi"):
        told["specification"] = f"toolkit {cdi['toolkit']}: made, unchanged, made again after a driver's update"
    if plugin := run.get("plugin"):
        told["device_plugin"] = f"registered in {plugin['registered_s']} s, {plugin['devices']} offered"
    for way, found in run.get("nccl", {}).items():
        told[f"[{way}]"] = plain(f"{found['verdict']}: {found['why']}", 200)
    if none := run.get("no_gpu"):
        told["without_a_gpu"] = f"refused in {none['refused_s']} s: {plain(none['cause'], 200)}"
    if one := run.get("tp1"):
        told["one_rank"] = (
            f"first token {one['first_token_s']} s after a cold start, back in {one['back_s']} s, "
            f"gone in {one['term_s']} s"
        )
    if refuse := run.get("tp2_refuse"):
        told["held_to_sockets"] = f"refused at {refuse['first_s']} s, down at {refuse['down_s']} s"
    if warn := run.get("tp2_warn"):
        told["where_that_is_a_warning"] = f"first token at {warn['first_token_s']} s, back in {warn['back_s']} s"
    return told


def stages(run: Run) -> str:
    told, lines = shown(run), list[list[object]]()
    for test, seconds in run["seconds"].items():
        name = test.partition("::")[2].removeprefix("test_")
        said = next((text for word, text in told.items() if word in name), "")
        lines.append([name.replace("_", " "), seconds, said])
    return rows(lines)


def faults(run: Run) -> str:
    lines = list[list[object]]()
    for key, title in FAULTS.items():
        if told := run.get(key):
            lines.append([title, plain(told["cause"].partition("failed: ")[2] or told["cause"]), f"{told['named_s']} s",
                          f"{told['back_s']} s" if "back_s" in told else "stays down, as told"])  # fmt: skip
    return rows(lines)


def not_named(run: Run) -> str:
    told = run.get("fault_xid_beside")
    if not told:
        return ""
    return (
        "**Not named, and why**: a bad address in *another* process. The engine goes on (state "
        f"`{told['engine']}`), as each process has its own context, and CUDA tells that process alone "
        f"({plain(told['cuda'], 120)}). Its Xid stands in the kernel's log: {plain(told['xid'], 160)}. A pod does not "
        "read that log."
    )


def memory(run: Run) -> str:
    lines = list[list[object]]()
    for context, row in sorted(run.get("memory", {}).items(), key=lambda pair: -int(pair[0])):
        plan, seen = row["plan"], row["logged"]
        weights, kv = plan["weights_gib_per_rank"], seen["k_gib"] + seen["v_gib"]
        lines.append([
            context, f"{weights:.2f}", f"{seen['weights_gib']:.2f}", off(weights, seen["weights_gib"]),
            f"{plan['kv_pool_gib']:.2f}", f"{kv:.2f}", off(plan["kv_pool_gib"], kv), f"{plan['graphs_gib']:.2f}",
            f"{seen.get('graphs_gib', 0):.2f}", f"{row['smi_mib'] / 1024:.1f}",
        ])  # fmt: skip
    return rows(lines)


def form(run: Run) -> str:
    told = run.get("time")
    if not told:
        return "not run."
    worst = max(map(abs, told["errors"]))
    other = told["by_context"]
    verdict = "It holds" if told["rms"] < 0.1 else "It does not hold here"
    return (
        f"rms {100 * told['rms']:.1f} %, worst {100 * worst:.1f} %, with a share of {told['share']:.2f} of 3,352 GB/s "
        f"and {told['layer_us']:.0f} us a layer. **{verdict}**: {other['own_ms']:.2f} ms + {other['token_ns']:.0f} ns "
        f"x context, whatever the batch, fits with rms {100 * other['rms']:.1f} %. "
        "Probably Triton's decode kernel reads one request's cache in few pieces: its length decides, not all "
        "requests' bytes, as an H100 has room for all."
    )


def time(run: Run) -> str:
    told = run.get("time", {"rows": [], "fitted": [], "errors": []})
    return rows([
        [row["context"], row["batch"], f"{1e3 * row['seconds']:.2f}", f"{1e3 * fitted:.2f}", f"{100 * error:+.1f} %"]
        for row, fitted, error in zip(told["rows"], told["fitted"], told["errors"], strict=True)
    ])  # fmt: skip


def speaks(run: Run) -> str:
    told = run.get("speaks")
    if not told:
        return "Not run."
    answers = "\n".join(f"- *{question}* {plain(answer)}" for question, answer in told["answers"].items())
    first = told["first_token_s"]
    return f"SmolLM2-135M-Instruct in bf16 safetensors, first token {first} s after the start:\n\n{answers}"


def main() -> int:
    run: Run = json.loads(RUN.read_text())
    parts = {each.__name__: each(run) for each in (machine, stages, faults, not_named, memory, form, time, speaks)}
    sys.stdout.write(TEMPLATE.read_text().format(today=datetime.date.today(), **parts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
