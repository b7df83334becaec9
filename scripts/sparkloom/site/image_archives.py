"""Images that lie as archives in a folder of the controller, for nodes without a way out: which node gets which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs import image_archive
from sparkloom.inputs.image_archive import Image
from sparkloom.onnode.images import reference

FOLDER = "images"  # of k3s_artifacts
Held = Mapping[str, Mapping[str, Any]]  # node -> image -> what `images held` answered of it


@dataclass(frozen=True, slots=True)
class Need:
    image: str  # as a pod names it
    digest: str  # empty: whatever the tag means
    nodes: tuple[str, ...]
    where: str  # that names it, for a person


Archives = Mapping[Path, Sequence[Image]]  # each file with what is in it


def lacking(needs: Sequence[Need], held: Held) -> dict[str, list[Need]]:
    """By node, what is not there yet."""

    def there(node: str, need: Need) -> bool:
        told = held[node].get(need.image, {})
        return need.digest in told.get("digests", ()) if need.digest else bool(told.get("tag"))

    missing = {node: [need for need in needs if node in need.nodes and not there(node, need)] for node in held}
    return {node: wanted for node, wanted in missing.items() if wanted}


def read(folder: Path) -> Archives:
    """Every archive there; none where there is no such folder."""
    paths = sorted(folder.glob("*")) if folder.is_dir() else []
    return {path: list(image_archive.read(path)) for path in paths if path.name.endswith(image_archive.SUFFIXES)}


def decide(
    folder: Path, missing: Mapping[str, Sequence[Need]], machines: Mapping[str, str]
) -> tuple[list[Finding], dict[str, list[dict[str, Any]]]]:
    """What each node is brought, `{node: [{file, size, images}]}`; refused before anything is sent.

    Archives are read only when a node lacks something: to look through a compressed one of an engine takes minutes.
    """
    archives = read(folder) if missing else {}
    findings: dict[tuple[str, str], Finding] = {}
    brought: dict[str, list[dict[str, Any]]] = {}
    for node, needs in missing.items():
        for need in needs:
            found = next((path for path, held in archives.items() if _inside(held, need, machines[node])), None)
            if found:
                _add(brought.setdefault(node, []), found, need)
            else:
                findings[need.image, machines[node]] = _refusal(folder, archives, need, machines[node])
    return list(findings.values()), {} if findings else brought


def _same(image: Image, need: Need) -> bool:
    """Whether it is what is wanted; an archive without digests is taken only where none is pinned."""
    named = reference.parse(need.image).tagged in image.names
    return image.digest == need.digest if need.digest else named


def _inside(images: Sequence[Image], need: Need, machine: str) -> bool:
    return any(_same(image, need) and machine in image.machines for image in images)


def _add(brought: list[dict[str, Any]], archive: Path, need: Need) -> None:
    entry = next((one for one in brought if one["file"] == str(archive)), None)
    if entry is None:
        facts = archive.stat()
        entry = {"file": str(archive), "size": facts.st_size, "when": facts.st_mtime_ns, "images": []}
        brought.append(entry)
    entry["images"].append({"image": need.image, "digest": need.digest})


def _refusal(folder: Path, archives: Archives, need: Need, machine: str) -> Finding:
    near = "; ".join(_near(archives, need))
    listed = f"there: {', '.join(path.name for path in archives)}" if archives else "no archive there"
    found = f"in no archive of {folder} ({near or listed})"
    expected = f"{need.digest or 'its tag'} for {machine} ({need.where})"
    return Finding("localhost", need.image.partition("@")[0], found, expected, _advice(folder, need, machine))


def _near(archives: Archives, need: Need) -> Iterator[str]:
    """Archives that almost have it, and what keeps each from being it."""
    for path, images in archives.items():
        for image in images:
            if _same(image, need):
                there = ", ".join(image.machines) or "no machine whole"
                yield f"{path.name} has it for {there} only"
            elif reference.parse(need.image).tagged in image.names:
                what = image.digest or "without a digest, as an older docker saves it: the pin cannot be checked"
                yield f"{path.name} has it as {what}"


def _advice(folder: Path, need: Need, machine: str) -> str:
    parsed = reference.parse(need.image)
    name = parsed.at(need.digest) if need.digest else parsed.tagged
    file = folder / f"{parsed.name.rpartition('/')[2]}.tar"
    platform = f"--platform linux/{machine}"
    saved = f"ctr images pull {platform} {name} && ctr images export {platform} {file} {name}"
    copied = f"skopeo copy --all docker://{name} oci-archive:{file}:{parsed.tagged}"
    mirrored = "Nodes that reach its registry or a mirror: k3s_images_from: registries, or k3s_registries"
    return f"where there is a way out: {saved} (or: {copied}). {mirrored}"
