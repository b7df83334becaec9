"""`sparkloom init`: a few questions, and an inventory of what answered."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sparkloom import case
from sparkloom.base import amount
from sparkloom.base.errors import InputError
from sparkloom.base.repository import WORK
from sparkloom.cli import names, show
from sparkloom.cli.options import Json
from sparkloom.inputs import inventory, known_hosts, remembered, serving
from sparkloom.site import endpoint, new_site, sparks

NEXT = """\
nothing on them was changed; next:
  sparkloom use {name:<20} # no -i from then on
  sparkloom plan {profile}
  sparkloom up --tags preflight -K   # looks at every machine, changes nothing
  sparkloom up -K                    # serves it at {url}/v1
  sparkloom connect openai           # the lines to paste into a program
  sparkloom status                   # what is served, and how it is
rm -r {folder} takes it back
"""
COMPARE = "each Spark shows its own: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"


def init(
    name: Annotated[str, typer.Argument(help="the site's name; `home` is written to inventories/home")],
    address: Annotated[
        list[str] | None, typer.Option("--address", "-a", help="one SSH address per Spark; rank 0 first")
    ] = None,
    user: Annotated[str | None, typer.Option(help="the login user")] = None,
    profile: Annotated[str | None, typer.Option(help="profile to serve", autocompletion=names.begun)] = None,
    hotplug: Annotated[
        bool | None, typer.Option("--hotplug/--no-hotplug", help="let the ConnectX-7 switch off without a cable")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="accept the SSH host keys without a question")] = False,
) -> None:
    folder = WORK / "inventories" / name
    new_site.require_free(folder)
    reached = address or _answer("--address", "Sparks, by address or name", " ".join(sparks.announced())).split()
    login = user or _answer("--user", "user on them", os.environ.get("USER") or "nvidia")
    found = sparks.look(reached, login)
    new_site.judge(found)
    for spark in found:
        rails = f"links on {', '.join(spark.linked)}" if spark.linked else "no ConnectX-7 port with a link"
        show.complain(f"{spark.reached}: {spark.name}, {spark.address} on {spark.interface}, {rails}\n")
        if spark.machine.key:
            show.complain(f"  its SSH host key: {spark.machine.fingerprint}\n")
        if spark.interface.startswith("wl"):  # as systemd names what has no cable
            show.complain(f"  {spark.interface} is Wi-Fi: images take hours, each gap is an outage; plug a cable in\n")
    served = names.exact(profile or _answer("--profile", "profile to serve", _suited(len(found))))
    allowed = _may_hotplug(found) if hotplug is None else hotplug
    asked = not yes and sys.stdin.isatty() and _confirmed(found)
    cluster = new_site.write(folder, found, login, served, hotplug=allowed)
    shown = Path(os.path.relpath(folder))
    show.words(f"wrote {shown}: {amount.of(len(cluster.nodes), 'Spark')}, serving {served}\n")
    show.words(f"host keys are in {known_hosts.place(shown)}{'' if asked else f'; {COMPARE}'}\n")
    url = endpoint.reach(cluster, folder).url
    show.say(NEXT.format(name=name, profile=served, url=url, folder=shown))  # to be copied: never broken


def _may_hotplug(found: Sequence[sparks.Spark]) -> bool:
    """Asked where it is switched on and a person sits here; else it stays as it is."""
    if len(found) < 2 or not any(spark.hotplug for spark in found) or not sys.stdin.isatty():
        return True
    question = "may hot-plug switch a ConnectX-7 without a link off? n: 15 to 18 W more a node then (y/n)"
    return not _answer("--hotplug", question, "y").lower().startswith("n")


def _confirmed(found: Sequence[sparks.Spark]) -> bool:
    """Whether a person was asked whose keys these are; a `no` ends it."""
    if not any(spark.machine.key for spark in found):
        return False
    show.complain(f"{COMPARE}\n")
    if _answer("--yes", "are these the Sparks' keys, yes or no", "").lower() not in ("y", "yes"):
        raise InputError.single("--yes", "the keys were not confirmed; nothing was written", rule="host-key")
    return True


def use(
    site: Annotated[str | None, typer.Argument(help="folder, or name in inventories/ (default: show the site)")] = None,
    none: Annotated[bool, typer.Option("--none", help="clear the default site")] = False,
    json: Json = False,
) -> None:
    if site and none:
        raise typer.BadParameter(f"--none forgets, {site} is to be remembered: write one of them")
    if site:
        folder = inventory.folder_of(site if Path(site).exists() else WORK / "inventories" / site)
        inventory.load(folder)
        remembered.keep(folder)
    elif none:
        remembered.keep(None)
    kept = None if none else remembered.site()
    told = f"{kept} is meant where no -i is given" if kept else "no site is remembered; `sparkloom use SITE` does it"
    show.out({"site": kept and str(kept)}, json, lambda _: told)


def _answer(option: str, question: str, proposed: str) -> str:
    """A person's word, or the proposal; refused where nobody sits at the other end."""
    if not sys.stdin.isatty():
        raise InputError.single(option, f"nobody is here to be asked for: {question}", rule="option")
    sys.stderr.write(f"{question}{f' [{proposed}]' if proposed else ''}: ")
    sys.stderr.flush()
    given = sys.stdin.readline().strip() or proposed
    if not given:
        raise InputError.single(option, f"expected {question}", rule="option")
    return given


def _suited(nodes: int) -> str:
    """The shipped example's profile, or what fits on so many Sparks."""
    example = inventory.load()
    wanted = serving.load(None, example).entries[0].profile
    return case.suited(wanted, example.model_copy(update={"nodes": example.nodes[:nodes]}))
