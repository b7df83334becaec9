"""Weights between nodes, attacked: the real store programs as processes on loopback addresses, one enemy each.

What the code before (commit 00336b1) did stands in each docstring. Seen there by these tests: a hub's commits and LFS
names that leave the store, http and redirects to it, the token on another host's page, links out of a folder, files
that change, a device as a blob, a crowd's threads, escape sequences. The hostile peers speak today's protocol: what
the old one let them do was shown by hand when the issue was written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import inventory
from sparkloom.launch import downloads
from sparkloom.onnode.weights import wire
from sparkloom.onnode.weights.layout import Snapshot
from sparkloom.site.checks import serving
from tests.security.stores import COMMIT, MODEL, SECRET, Impostor, Node, Rogue, checkpoint, entry, nodes, outside

GOOD = b"# good\n"
EVIL = b"import os  # evil\n"


def manifest(*files: dict[str, Any], **more: Any) -> bytes:
    told = {"id": MODEL, "commit": COMMIT, "files": list(files) or [entry("modeling_name.py", GOOD)], **more}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def taken(node: Node, given: bytes, told: str, content: bytes = GOOD, **more: Any) -> dict[str, Any]:
    """What comes of a node whose predecessor, an enemy that knows the secret, gives this manifest and this content."""
    with Impostor(given, content, **more) as enemy:
        node.start(node.spec(enemy.as_source(), manifests={MODEL: told}))
        return node.until("done", "failed")


HOSTILE = [
    manifest(commit="../../../../outside"),
    manifest(commit="/outside"),
    manifest(entry("../../../../outside", GOOD)),
    manifest(entry("/outside", GOOD)),
    manifest(entry("a", GOOD), entry("a/b", GOOD)),
    manifest(entry("name.py", GOOD, blob="../../../outside")),
    manifest(entry("name\n.py", GOOD)),
    manifest(id="../.."),
    manifest(id="/"),
    manifest({**entry("a", GOOD), "size": -1}),
    manifest({**entry("a", GOOD), "size": True}),
    manifest({**entry("a", GOOD), "sha256": None}),
    b"[" * 100_000,
    b'{"id": 1, "commit": [], "files": {}}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("given", HOSTILE, ids=lambda given: repr(given[:60])[2:])
def test_a_manifest_that_names_a_place_outside_is_nobodys_manifest(tmp_path: Path, given: bytes) -> None:
    """A commit of `../../..` or `/...` planted a symlink as root wherever it said.

    Refused twice: as another manifest than the controller's, and where the first node itself was the enemy.
    """
    with nodes(tmp_path, "spark2", "spark3") as (one, two):
        before = outside(tmp_path, one.root, two.root)
        refused = taken(one, given, "0" * 64)
        assert refused["state"] == "failed" and "another manifest" in refused["cause"]
        agreed = taken(two, given, digest(given))
        assert agreed["state"] == "failed" and len(agreed["cause"]) < 600 and agreed["cause"].isprintable()
        assert outside(tmp_path, one.root, two.root) == before
        for node in (one, two):
            assert outside(node.root, node.run) <= {"hub", "run"}, "nothing was made"


def test_changed_code_under_the_right_commit_is_not_taken(tmp_path: Path) -> None:
    """The node took it, and its deep check said that all was well: id and commit were right."""
    honest, forged = manifest(), manifest(entry("modeling_name.py", EVIL))
    with nodes(tmp_path, "spark2", "spark3") as (node, other):
        refused = taken(node, forged, digest(honest), EVIL)
        assert refused["state"] == "failed" and "spark1 hands on another manifest" in refused["cause"]
        assert not node.check(deep=True)["ok"]
        served = taken(other, honest, digest(honest), b"# evil\n")  # the right manifest and length, other bytes
        assert served["state"] == "failed" and not other.check()["ok"]


def test_changed_code_that_a_store_calls_verified_is_found_and_replaced(tmp_path: Path) -> None:
    """Nodes with the same commit counted as equal, and what was called verified for one content was for all."""
    blob = "ab" * 20  # git's hash names a small file, whatever is in it
    good, evil = manifest(entry("modeling_name.py", GOOD, blob)), manifest(entry("modeling_name.py", EVIL, blob))
    with nodes(tmp_path, "spark1", "spark2") as (first, second):
        for node, given, content in ((first, good, GOOD), (second, evil, EVIL)):
            assert taken(node, given, digest(given), content)["state"] == "done"
        checks = {"spark1": [first.check(deep=True)], "spark2": [second.check(deep=True)]}
        (finding,) = serving.weights(list(checks), {node: {"answer": rows} for node, rows in checks.items()})
        assert finding.where == "spark2" and "another than spark1's" in finding.message
        cluster = inventory.load()
        want = [{"id": MODEL, "revision": COMMIT}]
        settings = downloads.Settings(port=1, connections=1)
        assert list(downloads.chain(cluster, want, list(checks), checks, settings)) == ["spark1", "spark2"]
        first.start(first.spec({"kind": "own"}, downstream=True, peers=["127.0.0.1"]))
        second.start(second.spec(first.as_source(), manifests=first.listed(), job="again"))
        assert second.until("done", "failed")["state"] == "done"
        assert second.check(deep=True)["manifest"] == first.check()["manifest"] == digest(good)
        name = f"models--org--name/snapshots/{COMMIT}/modeling_name.py"
        assert (second.store / name).read_bytes() == GOOD


def test_code_beside_the_verified_files_is_found(tmp_path: Path) -> None:
    """No check looked at what stands in no manifest; a checkpoint's own code may import it."""
    with nodes(tmp_path, "spark2") as (node,):
        assert taken(node, manifest(), digest(manifest()))["state"] == "done"
        assert node.check(deep=True)["ok"]
        folder = node.store / f"models--org--name/snapshots/{COMMIT}"
        (folder / "helper.py").write_bytes(EVIL)
        assert node.check()["problems"] == ["helper.py: nobody verified it, and an engine may load it"]
        (folder / "helper.py").unlink()
        (folder / "modeling_name.py").resolve().write_bytes(EVIL)
        assert "modeling_name.py" in node.check(deep=True)["problems"][0]


def giving(node: Node, folder: Path, **more: Any) -> dict[str, str]:
    """A first node that imports a checkpoint and gives it to whom the plan names."""
    spec = {"downstream": True, "peers": ["127.0.0.1"], **more}
    node.start(node.spec({"kind": "folder", "path": str(checkpoint(folder))}, **spec))
    return node.listed()


def test_a_stranger_gets_nothing_and_an_unplanned_address_not_even_a_word(tmp_path: Path) -> None:
    """Anybody who reached the port got the manifest and every file, and could send the giver away."""
    with nodes(tmp_path, "spark1") as (node,):
        told = giving(node, tmp_path / "usb")[MODEL]
        place = ("127.0.0.1", node.port)
        with socket.create_connection(place, source_address=("127.0.0.9", 0), timeout=5) as unplanned:
            assert unplanned.recv(100) == b""
        for words in (b"GET /manifest HTTP/1.1\r\n\r\n", b"released\n", b"\0" * 1000):
            with socket.create_connection(place, timeout=5) as stranger:
                assert wire.HELLO.fullmatch(stranger.recv(100).decode().strip())
                stranger.sendall(words)
                assert _rest(stranger) == b""
        connection = wire.Connection(*place, None, 5)
        with pytest.raises(wire.NotProved):
            connection.ask(b"another run's", f"manifest {told}")
        assert node.status()["state"] in {"moving", "done"}
        assert wire.Connection(*place, None, 5).ask(SECRET.encode(), f"manifest {told}")[0] == "manifest"


def _rest(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1000)
    except ConnectionResetError:
        return b""


def test_a_proof_is_worth_nothing_in_another_connection(tmp_path: Path) -> None:
    """There were no proofs; the old protocol's only word of the run went in clear."""
    with nodes(tmp_path, "spark1") as (node,):
        told = giving(node, tmp_path / "usb")[MODEL]
        place = ("127.0.0.1", node.port)
        with socket.create_connection(place, timeout=5) as one, socket.create_connection(place, timeout=5) as two:
            theirs = one.recv(100).decode().split()[-1]
            two.recv(100)
            request, mine = f"manifest {told}", wire.nonce()
            line = f"{mine} {wire.proof(SECRET.encode(), 'taker', theirs, mine, request)} {request}\n".encode()
            one.sendall(line)
            assert one.recv(20).startswith(b"manifest")
            two.sendall(line)
            assert _rest(two) == b""


@pytest.mark.parametrize("secret", ["", "another run's"])
def test_a_giver_that_cannot_prove_the_secret_is_not_believed(
    tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answered at the address was believed: its manifest, its files, its word that all had failed."""
    from sparkloom.onnode.weights import peer
    from sparkloom.onnode.weights.job import Job
    from sparkloom.onnode.weights.names import StoreError

    monkeypatch.setattr(peer, "SILENCE", 1.0)
    with nodes(tmp_path, "spark2") as (node,), Impostor(manifest(), GOOD, secret) as enemy:
        job = Job(node.spec(enemy.as_source(), manifests={MODEL: digest(manifest())}), node.run)
        with pytest.raises(StoreError, match="does not prove that it knows"):
            peer.Peer(job).manifest()


def test_what_another_node_says_reaches_no_terminal_as_it_is(tmp_path: Path) -> None:
    """The cause that a node gave went to the controller's terminal with its escape sequences."""
    with nodes(tmp_path, "spark2") as (node,):
        refused = taken(node, b"", "0" * 64, failed=b"gone\x1b]52;c;ZXZpbA==\x07" + b"x" * 5000)
        assert refused["state"] == "failed" and refused["cause"].isprintable() and len(refused["cause"]) < 1100


def test_the_secret_is_in_no_argument_environment_log_or_packet(tmp_path: Path) -> None:
    """The old run's id was all that there was to know, and every request bore it in clear."""
    seen: list[bytes] = []
    with nodes(tmp_path, "spark1", "spark2") as (first, second):
        told = giving(first, tmp_path / "usb")
        with socket.create_server(("127.0.0.1", 0)) as door:
            threading.Thread(target=_relay, args=(door, first.port, seen), daemon=True).start()
            source = {**first.as_source(), "port": door.getsockname()[1]}
            second.start(second.spec(source, manifests=told))
            second.until("done")
        assert len(b"".join(seen)) > 7000 and SECRET.encode() not in b"".join(seen)
        for process in (first.status()["pid"], second.status()["pid"]):
            for name in ("cmdline", "environ"):
                try:
                    assert SECRET.encode() not in Path(f"/proc/{process}/{name}").read_bytes()
                except (FileNotFoundError, ProcessLookupError):
                    continue  # it has gone already
        kept = {path.name: modes for path, modes in _that_hold(tmp_path, SECRET.encode())}
        assert set(kept) <= {"secret"}
        assert all(mode & 0o077 == 0 for modes in kept.values() for mode in modes)


def _that_hold(folder: Path, words: bytes) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Files with these words: their modes and their folders'. An agent that ends takes its secret away meanwhile."""
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and words in path.read_bytes():
                yield path, (path.stat().st_mode, path.parent.stat().st_mode)


def _relay(door: socket.socket, port: int, seen: list[bytes]) -> None:
    def pour(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the other thread has closed this one's end
            while data := source.recv(1000):
                seen.append(data)
                target.sendall(data)
        target.close()

    while True:
        try:
            near, _ = door.accept()
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", port))
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pour, args=pair, daemon=True).start()


def test_those_who_only_hold_connections_keep_no_node_out(tmp_path: Path) -> None:
    """Each connection cost the giver a thread for as long as somebody liked: 300 were 300 threads."""
    with nodes(tmp_path, "spark1", "spark2") as (first, second):
        told = giving(first, tmp_path / "usb")
        held = [socket.create_connection(("127.0.0.1", first.port), timeout=5) for _ in range(300)]
        time.sleep(0.5)
        threads = len(list(Path(f"/proc/{first.status()['pid']}/task").iterdir()))
        assert threads < 60
        begun = time.monotonic()
        second.start(second.spec(first.as_source(), manifests=told))
        assert second.until("done")["state"] == "done" and time.monotonic() - begun < 6
        for each in held:
            each.close()


# The hub


def hub(node: Node, endpoint: str, *plain: str, **more: Any) -> dict[str, Any]:
    source = {"kind": "hub", "endpoint": endpoint, "plain_http": plain, "token": "hf_canary", "client": ""}
    node.start(node.spec(source, **more))
    return node.until("done", "failed")


def row(path: str = "config.json", **more: Any) -> dict[str, Any]:
    return {"type": "file", "oid": "ab" * 20, "size": 2, "path": path, **more}


ROWS = {
    "path-up": row("../../../../outside.json"),
    "path-absolute": row("/outside.json"),
    "path-control": row("a\x1b[2J.json"),
    "blob-up": row(oid="../../../outside"),
    "blob-absolute": row(oid="/dev/zero"),
    "lfs-sha": row("a.safetensors", lfs={"oid": "../../outside", "size": 2, "pointerSize": 1}),
    "small-is-huge": row(size=1 << 40),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_hubs_listing_names_files_of_a_snapshot_or_nothing(tmp_path: Path, kind: str) -> None:
    """Large files' names went as they came into the store's paths, and `/dev/zero` as a blob was read without end.

    On the old code three of these ended in a refusal for another reason: both paths here (git's hash is wrong too), and
    `blob-up` and `small-is-huge` (the same).
    """
    with nodes(tmp_path, "spark1") as (node,), Rogue(rows=[ROWS[kind]]).at("127.0.0.1") as (endpoint,):
        before = outside(tmp_path, node.root)
        refused = hub(node, endpoint, "127.0.0.1")
        assert refused["state"] == "failed" and refused["cause"].isprintable(), refused
        assert outside(tmp_path, node.root) == before
        assert outside(node.root, node.run) <= {"hub", "run"}


@pytest.mark.parametrize("sha", ["../../../../outside", "/outside", "main", "", None, "d" * 40])
def test_a_hubs_commit_is_one_and_the_pinned_one(tmp_path: Path, sha: object) -> None:
    """It named the snapshot's folder as it came, and where a commit was pinned another one was taken for it."""
    rogue = Rogue(sha=sha)
    rogue.file("config.json", b"{}")
    with nodes(tmp_path, "spark1") as (node,), rogue.at("127.0.0.1") as (endpoint,):
        before = outside(tmp_path, node.root)
        assert hub(node, endpoint, "127.0.0.1")["state"] == "failed"
        assert outside(tmp_path, node.root) == before and not (node.store / "by-name").exists()


def test_a_small_file_that_has_no_end_is_dropped(tmp_path: Path) -> None:
    """Its whole answer was kept in memory, however much it was."""
    rogue = Rogue()
    rogue.file("config.json", b"{}")
    rogue.contents["config.json"] = b"x" * 5_000_000
    with nodes(tmp_path, "spark1") as (node,), rogue.at("127.0.0.1") as (endpoint,):
        assert "more than the 2 bytes" in hub(node, endpoint, "127.0.0.1")["cause"]


def test_a_hub_without_https_is_asked_where_the_inventory_names_it(tmp_path: Path) -> None:
    """Any http address was taken; the token went there in clear."""
    rogue = Rogue()
    rogue.file("config.json", b"{}")
    with nodes(tmp_path, "spark1") as (node,), rogue.at("127.0.0.1") as (endpoint,):
        refused = hub(node, endpoint)
        assert "expected https" in refused["cause"] and "model_store_plain_http" in refused["cause"]
        assert not rogue.asked
        assert hub(node, endpoint, "127.0.0.1")["state"] == "done"


@pytest.mark.parametrize("bad", ["http://hub.lan", "ftp://hub.lan", "https://me:pw@hub.lan", "hub.lan", "http://[x"])
def test_the_controller_refuses_such_a_hub_before_a_node_is_told(bad: str) -> None:
    checks = {"spark1": [{"id": MODEL, "commit": None, "manifest": "", "ok": False, "problems": ["none"]}]}
    settings = downloads.Settings(port=1, connections=1, endpoint=bad)
    with pytest.raises(InputError, match="https://"):
        downloads.chain(inventory.load(), [{"id": MODEL, "revision": None}], ["spark1"], checks, settings)
    fine = downloads.Settings(port=1, connections=1, endpoint="http://hub.lan:8000", plain_http=("hub.lan",))
    assert downloads.chain(inventory.load(), [{"id": MODEL, "revision": None}], ["spark1"], checks, fine)


def test_the_token_is_for_the_hub_alone(tmp_path: Path) -> None:
    """The next page of a listing got it on whatever host it was; over redirects the client's transport dropped it."""
    rogue = Rogue()
    rogue.file("config.json", b"{}")
    rogue.large("model.safetensors", b"w" * 100_000)
    files = f"/{MODEL}/resolve/{COMMIT}"
    with nodes(tmp_path, "spark1") as (node,), rogue.at("127.0.0.1", "127.0.0.2") as (home, other):
        rogue.leads_to = {f"{files}/model.safetensors": f"{other}/model.safetensors"}
        rogue.next_page = f"{other}/more"
        assert hub(node, home, "127.0.0.1", "127.0.0.2")["state"] == "done"
        foreign = [asked for asked in rogue.asked if asked.host.startswith("127.0.0.2")]
        assert {asked.path for asked in foreign} == {"/more", "/model.safetensors"}
        assert not any(asked.token for asked in foreign)
        assert [asked.token for asked in rogue.asked if asked.path == f"{files}/config.json"] == ["Bearer hf_canary"]


def test_a_redirect_to_plain_http_of_another_host_is_not_followed(tmp_path: Path) -> None:
    """It was followed wherever it led."""
    rogue = Rogue()
    rogue.large("model.safetensors", b"w" * 1000)
    with nodes(tmp_path, "spark1") as (node,), rogue.at("127.0.0.1", "127.0.0.2") as (home, other):
        rogue.leads_to = {f"/{MODEL}/resolve/{COMMIT}/model.safetensors": f"{other}/model.safetensors"}
        assert "leads to http://127.0.0.2, expected https" in hub(node, home, "127.0.0.1")["cause"]
        assert not [asked for asked in rogue.asked if asked.host.startswith("127.0.0.2")]


# A folder


def imported(node: Node, folder: Path) -> dict[str, Any]:
    node.start(node.spec({"kind": "folder", "path": str(folder)}))
    return node.until("done", "failed")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A 0600 file of somebody else became a 0644 blob on every node."""
    secret = tmp_path / "shadow"
    secret.write_text("root:canary")
    secret.chmod(0o600)
    with nodes(tmp_path, "spark1") as (node,):
        folder = checkpoint(tmp_path / "usb")
        (folder / "tokenizer.json").symlink_to(secret)
        refused = imported(node, folder)
        assert "tokenizer.json" in refused["cause"] and "outside of" in refused["cause"]
        (folder / "tokenizer.json").unlink()
        (folder / "more").symlink_to("/etc")
        assert "outside of" in imported(node, folder)["cause"]
        kept = [path for path in node.root.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
        assert not kept and not (node.store / "by-name").exists()


@pytest.mark.parametrize("kind", ["pipe", "device", "dangling", "loop", "folder-link"])
def test_what_is_no_file_is_named_and_nobody_waits_for_it(tmp_path: Path, kind: str) -> None:
    """A pipe or a device behind a link was left out or read without end, and a link to nowhere left out."""
    with nodes(tmp_path, "spark1") as (node,):
        folder = checkpoint(tmp_path / "usb")
        odd = folder / "odd.json"
        if kind == "pipe":
            os.mkfifo(odd)
        else:
            goals = {"device": "/dev/zero", "dangling": "nowhere", "loop": "odd.json", "folder-link": ".."}
            odd.symlink_to(goals[kind])
        begun = time.monotonic()
        assert "odd.json" in imported(node, folder)["cause"] and time.monotonic() - begun < 5


@pytest.mark.parametrize("direct", [False, True])
def test_a_hub_caches_own_links_are_followed(tmp_path: Path, direct: bool) -> None:
    """It worked before, and must."""
    cache = tmp_path / "cache"
    repository = cache / "models--org--name"
    blobs = checkpoint(repository / "blobs")
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for blob in blobs.iterdir():
        (snapshot / blob.name).symlink_to(f"../../blobs/{blob.name}")
    with nodes(tmp_path, "spark1") as (node,):
        assert imported(node, snapshot if direct else cache)["state"] == "done"
        assert node.check(deep=True)["ok"]
        (snapshot / "more.json").symlink_to("../../../../cache/other.json")
        (cache / "other.json").write_text("{}")
        node.stop()
        assert "outside of" in imported(node, snapshot if direct else cache)["cause"]


def test_a_file_that_changes_while_it_is_copied_is_not_taken(tmp_path: Path) -> None:
    """It was read a second time and the import ended in `its source is damaged`; nobody was told why."""
    with nodes(tmp_path, "spark1") as (node,):
        folder = checkpoint(tmp_path / "usb", **{"model.safetensors": b"w" * 30_000_000})
        stop = threading.Event()

        def rewrite() -> None:
            while not stop.wait(0.001):
                os.utime(folder / "model.safetensors")

        thread = threading.Thread(target=rewrite)
        thread.start()
        refused = imported(node, folder)
        stop.set()
        thread.join()
        assert refused["state"] == "failed" and "changes while it is read" in refused["cause"]
        assert not (node.store / "by-name").exists()


def test_a_joined_transfer_takes_the_later_runs_secret(tmp_path: Path) -> None:
    """Ctrl-C and the same command again: the nodes at work join, and prove the new run's secret to each other."""
    with nodes(tmp_path, "spark1", "spark2") as (first, second):
        told = giving(first, tmp_path / "usb")
        second.start(second.spec({**first.as_source(), "port": first.port}, manifests=told, secret="not yet"))
        time.sleep(0.5)
        assert second.status()["state"] == "starting"
        assert second.start(second.spec(first.as_source(), manifests=told))["joined"]
        assert second.until("done", "failed")["state"] == "done"
        assert Snapshot.of(json.loads((second.store / f"manifests/org--name/{COMMIT}.json").read_text())["snapshot"])
