"""A node's own figures: nvidia-smi by the rack's stand-in, certificates by a maker that knows nothing of our reader."""

from __future__ import annotations

import datetime
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sparkloom.onnode import memory_guard
from sparkloom.onnode.host_metrics import FILE, certificates, disks, gpu, main
from sparkloom.render import pack
from tests import exposition
from tests.places import REPO

STAND_IN = REPO / "testbed/make/kind/node/usr/local/sbin/nvidia-smi"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "problem", "")


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program of this text where nvidia-smi is looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(text: str) -> None:
        (folder / "nvidia-smi").write_text(text)
        (folder / "nvidia-smi").chmod(0o755)

    return put


def of_gpu() -> list[exposition.Sample]:
    return exposition.read(main.page(gpu.samples()))


def test_a_gb10_tells_what_it_knows_and_nothing_is_made_up(smi: Callable[[str], None]) -> None:
    """Its memory is [N/A]: as 0 it would look like a GPU that nobody uses."""
    smi(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    samples = of_gpu()
    assert exposition.one(samples, "sparkloom_gpu_power_watts", gpu="0") == 4.12
    assert exposition.one(samples, "sparkloom_gpu_temperature_celsius") == 41
    assert exposition.one(samples, "sparkloom_gpu_clock_hertz") == 208e6
    assert exposition.one(samples, "sparkloom_gpu_clock_max_hertz") == 3003e6
    assert exposition.one(samples, "sparkloom_gpu_utilization_ratio") == 0
    assert {s.labels["reason"]: s.value for s in samples if s.name == "sparkloom_gpu_held_back"} == dict.fromkeys(
        (label for _, label in gpu.HELD.values()), 0
    )
    assert not [s for s in samples if "memory" in s.name] and gpu.problem == ""


ROW = "18.20, 83, 97, 2411, 3003, [N/A], [N/A], 0x0000000000000024"


@pytest.mark.parametrize(
    ("text", "power", "held"),
    [
        (f'echo "{ROW}"', 18.2, {"temperature", "power-cap"}),
        ('echo "[N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]"', None, set()),
        ('echo "[Unknown Error], nan, inf, , -, [Not Supported], x, 0xZZ"', None, set()),
        ('echo "1, 2"', None, set()),
        ("echo Failed to initialize NVML; exit 18", None, set()),
        ("exit 0", None, set()),
    ],
)  # fmt: skip
def test_what_a_driver_says_badly_is_not_there(
    text: str, power: float | None, held: set[str], smi: Callable[[str], None]
) -> None:
    smi(f"#!/bin/sh\n{text}\n")
    samples = of_gpu()
    assert [s.value for s in samples if s.name == "sparkloom_gpu_power_watts"] == ([] if power is None else [power])
    assert {s.labels["reason"] for s in samples if s.name == "sparkloom_gpu_held_back" and s.value} == held


def test_a_driver_that_hangs_is_named_and_does_not_hang_this(
    smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "SECONDS", 0.3)
    smi("#!/bin/sh\nexec sleep 60\n")
    begun = time.monotonic()
    assert of_gpu() == [] and time.monotonic() - begun < 5
    assert "timed out" in gpu.problem


# --- certificates ----------------------------------------------------------------------------------------------------


def made(ends: datetime.datetime, *, names: int = 1) -> tuple[bytes, bytes]:
    """PEM of a certificate and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x" * 60)] * names)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(2020, 1, 1))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


def utc(*when: int) -> datetime.datetime:
    return datetime.datetime(*when, tzinfo=datetime.UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize("names", [1, 40])
@pytest.mark.parametrize("ends", [utc(2026, 12, 24, 1, 2, 3), utc(2049, 12, 31, 23, 59, 59), utc(2055, 6, 1)])
def test_the_end_is_where_its_maker_put_it(ends: datetime.datetime, names: int) -> None:
    """After 2049 a date has four digits of a year, and a long name has a length of several bytes."""
    certificate, _ = made(ends, names=names)
    assert list(certificates.ends(certificate.decode())) == [ends.timestamp()]


def test_of_several_the_first_to_end_counts_and_nonsense_is_left_out(tmp_path: Path) -> None:
    early, late = utc(2027, 1, 1), utc(2035, 1, 1)
    (tmp_path / "chain.crt").write_bytes(made(late)[0] + made(early)[0])
    (tmp_path / "torn.crt").write_bytes(made(utc(2026, 1, 1))[0][:200])
    (tmp_path / "empty.crt").write_text("")
    whole = made(utc(2026, 2, 2))[0].decode().splitlines()
    (tmp_path / "cut.crt").write_text("\n".join([whole[0], *whole[1:3], whole[-1]]) + "\n")
    ends = certificates.Ends({"k3s": [f"{tmp_path}/*.crt", "/nowhere/*.crt"], "none": ["/nowhere/*"]}, "")
    assert ends.read(1000) == {"k3s": early.timestamp()}
    (tmp_path / "chain.crt").write_bytes(made(late)[0])
    assert ends.read(1000 + certificates.EVERY_SECONDS - 1) == {"k3s": early.timestamp()}
    assert ends.read(1000 + certificates.EVERY_SECONDS) == {"k3s": late.timestamp()}


@pytest.mark.parametrize("cut", range(0, 300, 7))
def test_no_piece_of_a_certificate_breaks_the_reader(cut: int) -> None:
    der = ssl.PEM_cert_to_DER_cert(made(utc(2030, 1, 1))[0].decode())
    for piece in (der[:cut], der[cut:], der[:cut] + b"\xff\xff\xff\xff" + der[cut:]):
        try:
            certificates.not_after(piece)
        except ValueError:
            continue


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[tuple[int, float]]:
    """A server with a certificate that nobody trusts, as the site's own authority is to a node."""
    ends = utc(2026, 12, 31)
    certificate, key = made(ends)
    (tmp_path / "chain.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "chain.pem")
    plug = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                given, _ = plug.accept()
                context.wrap_socket(given, server_side=True).close()
            except ssl.SSLError:
                continue
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    yield plug.getsockname()[1], ends.timestamp()
    plug.close()


def test_the_endpoint_shows_its_own(endpoint: tuple[int, float]) -> None:
    port, ends = endpoint
    assert certificates.Ends({}, f"127.0.0.1:{port}").read(0) == {"endpoint": ends}
    assert certificates.Ends({}, "127.0.0.1:1").read(0) == {}
    assert certificates.Ends({}, "no-such-host.invalid:x").read(0) == {}


# --- the whole -------------------------------------------------------------------------------------------------------


def test_the_guard_counts_what_it_stopped_and_the_node_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_guard, "KEPT", tmp_path / "run/memory-guard.json")
    monkeypatch.setattr(memory_guard, "PROC", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 127500000 kB\nMemAvailable: 20971520 kB\n")
    guard = tmp_path / "guard.json"
    settings = {"guard": str(guard), "disks": {}}

    def told() -> list[exposition.Sample]:
        return exposition.read(main.page(main.samples(settings, {}, 1_800_000_000.0)))

    assert {s.name for s in told()} & {main.FLOOR.name, main.STOPS.name} == set(), "no guard: no floor"
    guard.write_text(json.dumps({"floor_gib": 8.0}))
    assert exposition.one(told(), main.FLOOR.name) == 8 * 2**30
    assert exposition.one(told(), main.AVAILABLE.name) == 20 * 2**30
    assert exposition.one(told(), main.STOPS.name) == 0
    memory_guard.keep({"when": 1.0, "found": "short", "killed": ["a", "b"], "stops": memory_guard.stops() + 2})
    memory_guard.keep({"when": 2.0, "found": "short", "killed": ["a"], "stops": memory_guard.stops() + 1})
    assert exposition.one(told(), main.STOPS.name) == 3
    memory_guard.KEPT.write_text("[]")  # of an older guard, or torn
    assert exposition.one(told(), main.STOPS.name) == 0
    guard.write_text(json.dumps({"floor_gib": 0}))
    assert main.FLOOR.name not in {s.name for s in told()}


def test_a_disk_that_fills_tells_who_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("small", 1 << 12), ("large", 1 << 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x" * size)
    asked = {str(tmp_path): [f"{tmp_path}/*"], "/not/there": ["/*"]}

    def told(little: int) -> list[exposition.Sample]:
        monkeypatch.setattr(disks, "LITTLE", little)
        return exposition.read(main.page(disks.samples(asked, 1_800_000_000.0)))

    assert {one.name for one in told(0)} == {disks.FREE[0]}, "nothing is measured while there is room"
    held = {one.labels["holder"]: one.value for one in told(1 << 62) if one.name == disks.HELD[0]}
    assert held[f"{tmp_path}/large"] > held[f"{tmp_path}/small"] > 0


def test_a_folder_that_takes_too_long_leaves_the_others_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    du = tmp_path / "du"
    du.write_text('#!/bin/sh\ncase "$*" in *slow) exec sleep 60;; *) printf "4\\t$3\\n";; esac\n')
    du.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(disks, "PATIENCE", 0.5)
    for name in ("slow", "quick"):
        (tmp_path / name).mkdir()
    held = disks._held(str(tmp_path), {str(tmp_path): [f"{tmp_path}/slow", f"{tmp_path}/quick", "/proc/self"]}, 0.0)
    assert held == [(f"{tmp_path}/quick", 4096)], "/proc is another disk"


def test_the_program_as_a_node_has_it_writes_a_whole_file(tmp_path: Path, smi: Callable[[str], None]) -> None:
    smi(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program = pack.program("host_metrics").keep(tmp_path)
    settings = tmp_path / "settings.json"
    folder = tmp_path / "textfiles"
    asked = {"folder": str(folder), "guard": "/none", "disks": {}, "certificates": {}, "endpoint": ""}
    settings.write_text(json.dumps(asked))
    with subprocess.Popen([sys.executable, "-I", str(program), str(settings)]) as running:
        limit = time.monotonic() + 30
        while not (folder / FILE).exists() and time.monotonic() < limit:
            time.sleep(0.05)
        running.terminate()
    samples = exposition.read((folder / FILE).read_text())
    assert abs(exposition.one(samples, main.WRITTEN.name) - time.time()) < 60
    assert exposition.one(samples, "sparkloom_gpu_power_watts") == 4.12
    assert exposition.one(samples, main.AVAILABLE.name) > 0
    assert (folder / FILE).stat().st_mode & 0o777 == 0o644
    assert {sample.name for sample in samples} <= set(main.NAMES)
