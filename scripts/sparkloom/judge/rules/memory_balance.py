"""SGLang compares the free memory of the ranks before a load and ends when one has a tenth less than another."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case

NAME = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"


class MemoryBalance(Rule):
    id = "memory-balance"
    severity = "warning"
    scope = Scope(engine="sglang", nodes=">1")
    why = (
        "CPU and GPU share a Spark's memory, and a crashed engine keeps some: the check refuses a node that has enough"
    )
    fix = f"leave {NAME} out (Sparkloom sets 0); a node that is much lower than the others wants a reboot"
    evidence = (
        Source("read in the engine's released code: on by default, 0.5.9 to 0.5.23", "2026-11"),
        Source("about 33 GB kept after each crash, and the check then refuses (al-engr.com)", "2026"),
    )
    log_pattern = r"The memory capacity is unbalanced\. Some GPUs may be occupied"
    failing = case(nodes=4, tp=4)
    passing = case(nodes=4, tp=4, env={NAME: "0"})

    def check(self, view: LaunchView) -> Hits:
        given = view.env.get(NAME, "")
        if given.lower() in ("0", "false", "no", "n") or (view.partial and not given):
            return
        yield Hit(f"{NAME} is {given or 'unset, and the engine then checks'}", f"env.{NAME}")
