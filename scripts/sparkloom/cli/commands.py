"""Every command with its one line of help and the function behind it, which is imported when the command is asked for.

A command that is `plain` reads its own words: loading the library that reads the others' would cost `bench` more than
measuring eight streams. So this table imports nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

PROGRAM = "sparkloom"
ASKED_BY_SHELL = "_SPARKLOOM_COMPLETE"  # set by the function that `sparkloom completion` prints


class Command(NamedTuple):
    """`where` is `module:function`, below this package; a group has the commands `below` it instead."""

    name: str
    help: str
    where: str = ""
    plain: bool = False
    below: tuple[Command, ...] = ()
    hidden: bool = False  # it works, and is neither listed nor completed

    def load(self) -> Callable[..., Any]:
        module, _, function = self.where.partition(":")
        loaded: Callable[..., Any] = getattr(import_module(f"sparkloom.{module}"), function)
        return loaded


EVIDENCE = (
    Command("find", "Find the measured runs closest to this launch.", "cli.evidence:find"),
    Command("best", "Show a model's fastest valid measurements.", "cli.evidence:best"),
    Command("compare", "Say whether two measured figures are comparable.", "cli.evidence:compare"),
    Command(
        "add",
        "Add a matrix cell to its profile as evidence, and as a measured row; failures too.",
        "cli.measuring:evidence_add",
    ),
    Command("score", "Measure how well the rules predict which configurations fail.", "cli.evidence:score"),
)
PROFILE = (
    Command(
        "new",
        "Draft a profile from a model's files: facts, a split that fits, flags of the nearest profile.",
        "cli.drafting:new",
    ),
    Command("check", "Compare a profile's facts with its checkpoint.", "cli.drafting:check"),
)
KEYS = (
    Command("add", "Make a key for a person: shown once, kept as a hash in the site's keys.yml.", "cli.keys:add"),
    Command("list", "List keys with their models, limits and expiry.", "cli.keys:list_"),
    Command("revoke", "Revoke a person's key.", "cli.keys:revoke"),
)
METRICS = (
    Command("dashboards", "Write Grafana dashboards: fleet, group, rails, Sparks, people.", "cli.metrics:dashboards"),
    Command("rules", "Write alert rules for your own Prometheus, with this site's ports.", "cli.metrics:rules"),
)
FLEET = (
    Command(
        "plan",
        "Place each profile of the inventory's `serve:`: Sparks, memory, rail functions; what runs stays.",
        "cli.fleet:plan",
    ),
)
IMAGE = (
    Command(
        "list",
        "List recipes of images that nobody publishes: what each serves, and whether it is pinned.",
        "cli.images:list_",
    ),
    Command(
        "show",
        "Show one recipe: its parts, what is not pinned or not known, and the sources.",
        "cli.images:show_",
    ),
    Command("render", "Print a recipe's Dockerfile, or write its build context with -o.", "cli.images:render"),
    Command(
        "build",
        "Build an image on one Spark, copy it to all over the rails, and lock its digest for the site.",
        "cli.images:build",
    ),
    Command(
        "schema", "Print the JSON schema of a recipe, for editors (image_recipes/schema.json).", "cli.images:schema"
    ),
)
SHOW = (
    Command("argv", "Print a rank's exact command line.", "cli.profiles:argv"),
    Command("env", "Print a rank's exact environment; secrets are shown as references.", "cli.profiles:env"),
    Command("manifests", "Print the Kubernetes manifests that playbooks/serve.yml applies.", "cli.rendering:render"),
    Command(
        "schema",
        "Print the JSON schema of a profile, for editors (model_profiles/schema.json).",
        "cli.rendering:schema",
    ),
    Command("nccl", "Read from logs which transport NCCL used, per rank, and why.", "cli.reading:nccl_log"),
)
SHELVES = {
    "Look": (
        Command("profiles", "List model profiles with their status and measured speed.", "cli.profiles:profiles"),
        Command(
            "plan",
            "Say whether a model starts and fits, how fast it can be, and what is launched.",
            "cli.judging:plan",
        ),
        Command(
            "lint",
            "Find known traps in a profile: what fails, why, and what to write instead.",
            "cli.judging:lint",
        ),
        Command("evidence", "Search 1,080 measured configurations, and judge the rules by them.", below=EVIDENCE),
        Command("fleet", "Plan several profiles on one site.", below=FLEET),
        Command(
            "fabric",
            "Show rails, functions and addresses per node; `fabric discover` detects the cabling.",
            "cli.cabling:fabric",
        ),
        Command(
            "show",
            "Show exactly what is launched: command, environment, manifests, NCCL's transport.",
            below=SHOW,
        ),
        Command("diagnose", "Name the cause and the fix of a failed start from its log.", "cli.judging:diagnose"),
    ),
    "Serve": (
        Command(
            "init", "Write an inventory from Sparks that answer on SSH; asks three questions.", "cli.beginning:init"
        ),
        Command("up", "Set up the Sparks and serve the model: site.yml with progress on one screen.", "cli.upping:up"),
        Command(
            "status",
            "Show what is served now, since when, and the state of each rank.",
            "cli.serving:status",
        ),
        Command("logs", "Print the ranks' logs; `sparkloom diagnose` names causes in them.", "cli.serving:logs"),
        Command(
            "doctor",
            "Compare hosts, fabric, cluster, weights and serving with the plan; changes nothing.",
            "cli.serving:doctor",
        ),
        Command("connect", "Print the lines that connect a client program to this site.", "cli.connect:connect"),
        Command("keys", "Manage people's keys: models, limits, expiry.", below=KEYS),
        Command(
            "usage",
            "Show requests, tokens and refusals per person and model.",
            "cli.usage:usage",
        ),
        Command("metrics", "Write dashboards and alert rules as files.", below=METRICS),
    ),
    "Measure": (
        Command(
            "bench",
            "Measure a served model: first token, tokens a second, and whether the output is text.",
            "measure.bench.command:bench",
            plain=True,
        ),
        Command("guard", "Tell text from garbage in recorded output.", "cli.reading:guard"),
        Command(
            "allreduce",
            "Measure the engine's all-reduce between pods; nothing may be served meanwhile.",
            "cli.measuring:allreduce",
        ),
        Command(
            "matrix",
            "Run a grid of configurations cell by cell, resumable, and report it.",
            "cli.measuring:matrix",
        ),
    ),
    "Bring": (
        Command(
            "import",
            "Turn a recipe, compose file or command into a profile: does it start and fit, what is left out.",
            "cli.importing:import_",
        ),
        Command(
            "export",
            "Write a launch without Kubernetes: a sparkrun recipe, a compose file, or commands per node.",
            "cli.importing:export",
        ),
        Command("profile", "Draft a profile for a new model, or check a profile's facts.", below=PROFILE),
        Command("image", "Build images that nobody publishes, from recipes, on a Spark.", below=IMAGE),
    ),
    "More": (Command("completion", "Print a completion script for bash, zsh or fish.", "cli.completion:script"),),
}
# Old names that others' scripts may call; not listed, and gone with the next release.
MOVED = {"argv": "argv", "env": "env", "render": "manifests", "schema": "schema", "nccl-log": "nccl"}
COMMANDS = (
    *chain.from_iterable(SHELVES.values()),
    *(command._replace(name=old, hidden=True) for old, new in MOVED.items() for command in SHOW if command.name == new),
)
