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
    Command("find", "What was measured closest to this configuration.", "cli.evidence:find"),
    Command("best", "The fastest sane measurements of a model.", "cli.evidence:best"),
    Command("compare", "Whether two measured figures can be held against each other.", "cli.evidence:compare"),
    Command(
        "add",
        "A cell of a matrix as evidence in its profile and as a measured row; failures too.",
        "cli.measuring:evidence_add",
    ),
    Command("score", "How well the rules alone predict which configurations fail.", "cli.evidence:score"),
)
PROFILE = (
    Command(
        "new",
        "Draft a profile from a model's own files: facts, the placement that fits, flags by the nearest runs.",
        "cli.drafting:new",
    ),
    Command("check", "Where a profile and the checkpoint that it names disagree, fact by fact.", "cli.drafting:check"),
)
KEYS = (
    Command("add", "A key for somebody: shown once, its hash is kept in the site's keys.yml.", "cli.keys:add"),
    Command("list", "Whose keys there are, for which models and how much, and which have ended.", "cli.keys:list_"),
    Command("revoke", "Takes somebody's key away.", "cli.keys:revoke"),
)
METRICS = (
    Command(
        "dashboards", "Dashboards for Grafana as files: fleet, group, rails, Sparks, people.", "cli.metrics:dashboards"
    ),
    Command("rules", "Alert rules for a Prometheus of your own, with this site's ports in them.", "cli.metrics:rules"),
)
FLEET = (
    Command(
        "plan",
        "Where each profile of the inventory's `serve:` goes: Sparks, memory, functions of the rails; what runs stays.",
        "cli.fleet:plan",
    ),
)
IMAGE = (
    Command(
        "list",
        "Recipes of images that nobody publishes: what each serves, and whether it is pinned.",
        "cli.images:list_",
    ),
    Command(
        "show",
        "One recipe: what it is made of, what is not fixed or not known, from which sources.",
        "cli.images:show_",
    ),
    Command(
        "render", "The Dockerfile of a recipe, or with -o the whole folder that is built from.", "cli.images:render"
    ),
    Command(
        "build",
        "Build an image on one Spark and bring it to all, over the rails; its digest is locked for the site.",
        "cli.images:build",
    ),
    Command("schema", "The JSON schema of a recipe, for editors (image_recipes/schema.json).", "cli.images:schema"),
)
SHOW = (
    Command("argv", "Exactly that rank's command line.", "cli.profiles:argv"),
    Command("env", "Exactly that rank's environment; secrets are shown as references.", "cli.profiles:env"),
    Command("manifests", "The Kubernetes manifests that playbooks/serve.yml applies.", "cli.rendering:render"),
    Command(
        "schema", "The JSON schema of a profile, for editors (model_profiles/schema.json).", "cli.rendering:schema"
    ),
    Command("nccl", "Which transport NCCL really took, per rank, and why.", "cli.reading:nccl_log"),
)
SHELVES = {
    "Look": (
        Command("profiles", "Model profiles, what they are based on and what was measured.", "cli.profiles:profiles"),
        Command(
            "plan",
            "Will it start, will it fit, how fast can it be at best, and what exactly is launched.",
            "cli.judging:plan",
        ),
        Command(
            "lint",
            "Traps in a profile: what is known to crash, hang or lie, why, and what to write instead.",
            "cli.judging:lint",
        ),
        Command(
            "evidence", "What was measured: 1,080 configurations, and how well the rules predict them.", below=EVIDENCE
        ),
        Command("fleet", "Several profiles on one site: which of them stands where.", below=FLEET),
        Command(
            "fabric",
            "Rails, functions and addresses per node; `fabric discover` finds out how the Sparks are cabled.",
            "cli.cabling:fabric",
        ),
        Command(
            "show",
            "Exactly what is launched: a rank's command and environment, the manifests; which way NCCL took.",
            below=SHOW,
        ),
        Command("diagnose", "The cause and the fix of a failed start, read from its log.", "cli.judging:diagnose"),
    ),
    "Serve": (
        Command(
            "init", "An inventory of your own from Sparks that answer on SSH: three questions.", "cli.beginning:init"
        ),
        Command(
            "up", "From Sparks that answer on SSH to a served model: site.yml, told on one screen.", "cli.upping:up"
        ),
        Command(
            "status",
            "What is served now, by which profile and configuration, since when, and how each rank is.",
            "cli.serving:status",
        ),
        Command("logs", "What the ranks said; `sparkloom diagnose` names causes in it.", "cli.serving:logs"),
        Command(
            "doctor",
            "Is everything as planned? Hosts, fabric, cluster, weights, serving; changes nothing.",
            "cli.serving:doctor",
        ),
        Command("keys", "Who may ask this site's models, which ones, how much and until when.", below=KEYS),
        Command(
            "usage",
            "How much each person used of each model: requests, tokens of prompts and answers, refusals.",
            "cli.usage:usage",
        ),
        Command("metrics", "Dashboards and alert rules as files.", below=METRICS),
    ),
    "Measure": (
        Command(
            "bench",
            "Measure a served model: first token, tokens a second, and whether it is text at all.",
            "measure.bench.command:bench",
            plain=True,
        ),
        Command("guard", "Is this output text, or garbage that benchmarks well?", "cli.reading:guard"),
        Command(
            "allreduce",
            "What the engine's own collective costs between pods, over which rails; nothing may be served then.",
            "cli.measuring:allreduce",
        ),
        Command(
            "matrix",
            "A grid of configurations as data: run it cell by cell, resumable, and report it.",
            "cli.measuring:matrix",
        ),
    ),
    "Bring": (
        Command(
            "import",
            "Somebody's recipe, compose file or command as a profile: will it start, does it fit, what is left out.",
            "cli.importing:import_",
        ),
        Command(
            "export",
            "A judged launch without Kubernetes: a sparkrun recipe, a compose file, or plain commands per node.",
            "cli.importing:export",
        ),
        Command("profile", "A profile for a model that has none, and whether one's facts are right.", below=PROFILE),
        Command(
            "image", "Images that are ours to build: recipes, their Dockerfiles, and the build on a Spark.", below=IMAGE
        ),
    ),
    "More": (
        Command(
            "completion", "What completes commands, options and profiles in bash, zsh or fish.", "cli.completion:script"
        ),
    ),
}
# Words of before that others' scripts may call; not listed, and gone with the next release.
MOVED = {"argv": "argv", "env": "env", "render": "manifests", "schema": "schema", "nccl-log": "nccl"}
COMMANDS = (
    *chain.from_iterable(SHELVES.values()),
    *(command._replace(name=old, hidden=True) for old, new in MOVED.items() for command in SHOW if command.name == new),
)
