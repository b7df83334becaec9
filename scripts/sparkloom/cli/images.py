"""`sparkloom image`: recipes of images that are ours to build, their build context, and the build on a site."""

from __future__ import annotations

import json as plain
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.base.errors import InputError, Refused
from sparkloom.base.finding import errors
from sparkloom.base.repository import REPO, WORK, kept
from sparkloom.cli import names, show, show_findings
from sparkloom.cli.options import AskBecomePass, Inventory, Json, writes_to
from sparkloom.inputs import image_recipes
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.image_recipes import LoadedRecipe
from sparkloom.inputs.inventory import DEFAULT_INVENTORY, require_own
from sparkloom.render import image_context
from sparkloom.site import image_build, play


def _begun(incomplete: str) -> list[str]:
    return [name for name in image_recipes.names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="name from image_recipes/, or a path", autocompletion=_begun)]


def list_(json: Json = False) -> None:
    show.out([_row(image_recipes.load(name)) for name in image_recipes.names()], json, _listed)


def show_(name: Name, json: Json = False) -> None:
    loaded = image_recipes.load(name)
    found = image_build.findings(loaded)
    recipe = loaded.recipe.model_dump(mode="json")
    data = {**_row(loaded), "recipe": recipe, "findings": [one.as_dict() for one in found]}
    show.out(data, json, _shown)
    raise typer.Exit(1 if errors(found) else 0)


def render(
    name: Name,
    output: Annotated[
        Path | None, writes_to("folder to write the whole context into (default: print the Dockerfile)")
    ] = None,
    json: Json = False,
) -> None:
    loaded = image_recipes.load(name)
    context = image_context.context(loaded)
    for finding in errors(image_build.findings(loaded)):  # on stderr, so that it cannot pass unseen
        show.complain(f"{finding.where}: {finding.message}\n")
    if output is None:
        told = {
            file: content.decode(errors="replace") for file, content in context.items() if file != image_context.APPLY
        }
        show.out(told, json, lambda shown: show.say(shown["Dockerfile"]))
        return
    for file, content in context.items():
        show.write(output / file, content)
    show.out({"folder": str(output), "files": sorted(context)}, json, lambda _: f"wrote {', '.join(sorted(context))}")


def build(
    name: Annotated[
        str | None,
        typer.Argument(
            help="name from image_recipes/, or a path (default: the recipe of the inventory's profile)",
            autocompletion=_begun,
        ),
    ] = None,
    inventory: Inventory = None,
    node: Annotated[str, typer.Option(help="the Spark that builds (default: the first)")] = "",
    limit: Annotated[str | None, typer.Option(help="only these nodes, as in ansible --limit")] = None,
    beside: Annotated[bool, typer.Option("--beside", help="build although an engine serves there")] = False,
    again: Annotated[bool, typer.Option("--again", help="rebuild even if the nodes have the image")] = False,
    force: Annotated[bool, typer.Option("--force", help="build despite error findings, and name them")] = False,
    ask_become_pass: AskBecomePass = False,
    json: Json = False,
) -> None:
    site = inventory or DEFAULT_INVENTORY
    loaded = image_recipes.load(name or _of_the_site(site))
    found = errors(image_build.findings(loaded))
    if found and not force:
        raise Refused(found)
    show_findings.forced(found)
    cluster = case.cluster(site)
    require_own(cluster.example)
    chosen = {
        "recipe": str(Path(name).resolve()) if name and "/" in name else loaded.name,
        "node": node,
        "beside": beside,
        "again": again,
        "force": force,
    }
    words = ["-e", plain.dumps({f"image_build_{key}": value for key, value in chosen.items()})]
    words += [*(["--limit", limit] if limit else []), *(["-K"] if ask_become_pass else [])]
    play.require_collections()
    command = play.command(REPO / "playbooks" / "image.yml", site, words)
    sys.stdout.flush()
    code = subprocess.run(command, cwd=WORK, env=play.environment(), stdout=sys.stderr if json else None).returncode
    result = kept(cluster.name) / "images" / f"{loaded.name}.json"
    if json and code == 0:
        show.say(result.read_text(encoding="utf-8"))
    raise typer.Exit(1 if code else 0)


def schema() -> None:
    """Of a recipe's file, for editors (image_recipes/schema.json)."""
    described = image_recipes.Recipe.model_json_schema()
    kind = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    show.out({**kind, **described, "title": "Sparkloom image recipe"}, True, str)


def _of_the_site(site: Path) -> str:
    """The recipe of the profile that the inventory serves."""
    from sparkloom.base import document

    file = site / "group_vars" / "all" / "cluster.yml"
    served = str(document.load(file).data.get("profile") or "")
    recipe = profiles.load(served).profile.engine.recipe if served else None
    if recipe is None:
        message = (
            f"the profile '{served}' names no recipe (engine.recipe); which image? `sparkloom image list` lists them"
        )
        raise InputError.single(str(file), message, rule="no-recipe")
    return recipe


def _row(loaded: LoadedRecipe) -> dict[str, Any]:
    recipe = loaded.recipe
    return {
        "name": loaded.name,
        "image": recipe.image,
        "engine": recipe.serves.engine,
        "release": recipe.serves.release,
        "platform": recipe.platform,
        "profiles": _users(loaded.name),
        "unpinned": [one.message for one in image_recipes.unpinned(recipe)],
        "moves": [one.message for one in image_recipes.moving(recipe)],
        "unknown": list(recipe.unknown),
        "sha256": image_context.of(loaded),
        "summary": recipe.summary,
    }


def _users(recipe: str) -> list[str]:
    return [name for name in names.every() if profiles.load(name).profile.engine.recipe == recipe]


def _listed(recipes: list[dict[str, Any]]) -> None:
    rows = []
    for row in recipes:
        notes = f", {len(row['moves'])} notes" if row["moves"] else ""
        pinned = "no: " + "; ".join(row["unpinned"]) if row["unpinned"] else f"yes{notes}"
        used = ", ".join(row["profiles"]) or "none"
        rows.append((row["name"], f"{row['engine']} {row['release']}", row["image"], pinned, used))
    show.table(("recipe", "engine", "image", "pinned", "profiles"), rows, dropped=("image", "profiles"))


def _shown(data: dict[str, Any]) -> None:
    recipe = data["recipe"]
    lines = [f"{data['name']}: {data['summary']}", f"image     {data['image']}, {data['platform']}"]
    lines += [f"serves    {data['engine']} {data['release']}; profiles: {', '.join(data['profiles']) or 'none'}"]
    lines += [f"base      {recipe['base']['image']} {recipe['base']['digest'] or '(no digest)'}"]
    needs = recipe["needs"]
    lines += [f"needs     {needs['disk_gb']:g} GB of disk, {needs['memory_gib']:g} GiB of memory"]
    lines += [f"identity  {data['sha256']}"]
    lines += [f"unknown   {text}" for text in data["unknown"]]
    show.words("\n".join([*lines, *(f"source    {text}" for text in recipe["sources"]), ""]))
    show_findings.listed(show.console(), data["findings"])
