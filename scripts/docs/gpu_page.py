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
TWO = RUN.with_name("run_two_gpus.json")
KERNELS = {
    "triton": "Triton, 8 pieces", "triton-64": "Triton, 64 pieces", "flashinfer": "FlashInfer",
    "fp8": "FlashInfer, FP8 weights and cache",
}  # fmt: skip
FAULTS = {
    "fault_hang": "a kernel that hangs in the engine's stream (its patience here 40 s; else 100 s)",
    "fault_illegal": "a bad address in the engine's process (Xid 31)",
    "fault_memory_before": "memory that another process took before the load",
    "fault_memory_while": "memory that another process takes while the engine loads",
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
    if cluster := run.get("cluster"):
        told["kubernetes"] = (
            f"{cluster['versions']['kubeletVersion']}, {cluster['versions']['containerRuntimeVersion']}: node ready in "
            f"{cluster['node_s']} s, {cluster['offered']} GPU offered {cluster['offered_s']} s later, pod ready after "
            f"{cluster['ready_s']} s (kernels compile), its answer read, gone in {cluster['gone_s']} s"
        )
        if guard := cluster.get("guard"):
            told["kubernetes"] += (
                f". The node's memory guard ended the engine, and nothing else: named after {guard['named_s']} s "
                f"({plain(guard['cause'], 160)}), serving again after {guard['back_s']} s"
            )
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


def garbage(run: Run) -> str:
    """What the guard of `bench` says while nothing else notices."""
    told = run.get("fault_garbage")
    if not told:
        return "Not run."
    seen = [f"*{name}*: {told[name]['verdict']} ({plain(told[name].get('why') or 'text', 120)})"
            for name in ("before", "noise", "nan")]  # fmt: skip
    return (
        "The last matrix was spoilt while the engine served: filled with noise, then with NaN. "
        f"`bench` says {'; '.join(seen)}. The supervisor said `{told['phase']}`: it asks for tokens, not for sense."
    )


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
    for name, row in sorted(run["memory"].items(), key=lambda pair: -int(pair[0].split()[0])):
        context, kernel = name.split()
        plan, seen, counts = row["plan"], row["logged"], row["torch"]
        weights, kv = plan["weights_gib_per_rank"], seen["k_gib"] + seen["v_gib"]
        whole = weights + plan["kv_pool_gib"] + plan["graphs_gib"]
        lines.append([
            context, KERNELS[kernel], f"{weights:.2f}", f"{seen['weights_gib']:.2f}",
            f"{plan['kv_pool_gib']:.2f}", f"{kv:.2f}", off(plan["kv_pool_gib"], kv),
            f"{whole:.1f}", f"{counts['max_memory_allocated']:.1f}", f"{row['smi_mib'] / 1024:.1f}",
            off(whole, row["smi_mib"] / 1024),
        ])  # fmt: skip
    return rows(lines)


def form(run: Run) -> str:
    lines = list[list[object]]()
    for kernel, title in KERNELS.items():
        told = run["time"][kernel]
        piece = f"{told['token_ns'] / 1e3:.1f} us a token" if told["token_ns"] else "none"
        lines.append([title, told["of"], f"{told['share']:.2f}", f"{told['layer_us']:.0f} us", piece,
                      f"{100 * told['rms']:.1f} %", f"{100 * max(map(abs, told['errors'])):.0f} %"])  # fmt: skip
    return rows(lines)


def time(run: Run) -> str:
    cells: dict[tuple[int, int], dict[str, str]] = {}
    for kernel in KERNELS:
        told = run["time"][kernel]
        errors = told["errors"][-len(told["rows"]) :]  # of a fit over two kernels, its own are the last
        for row, error in zip(told["rows"], errors, strict=True):
            said = f"{1e3 * row['seconds']:.2f} ({100 * error:+.0f} %)"
            cells.setdefault((row["context"], row["batch"]), {})[kernel] = said
    return rows([[*key, *(cell.get(kernel, "-") for kernel in KERNELS)] for key, cell in sorted(cells.items())])


def speaks(run: Run) -> str:
    told = run.get("speaks")
    if not told:
        return "Not run."
    answers = "\n".join(f"- *{question}* {plain(answer)}" for question, answer in told["answers"].items())
    first = told["first_token_s"]
    return f"SmolLM2-135M-Instruct in bf16 safetensors, first token {first} s after the start:\n\n{answers}"


def main() -> int:
    run: Run = json.loads(RUN.read_text())
    two: Run = json.loads(TWO.read_text())
    made = (machine, stages, faults, garbage, not_named, memory, form, time)
    parts: dict[str, Any] = {each.__name__: each(run) for each in made}
    parts |= {
        "pack": run["pack"],
        "line": run["machine"]["line"],
        "two_machine": machine(two),
        "two_stages": stages(two),
        "speaks": speaks(two),
    }
    sys.stdout.write(TEMPLATE.read_text().format(today=datetime.date.today(), **parts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
