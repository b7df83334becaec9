"""What the ranks load, as the model store's own layout: a model that recites, one of a shape alone, one that speaks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from sparkloom.onnode.weights.layout import Entry, Snapshot, Store
from testbed.beds.gpu import place
from testbed.standins.hub import tiny

SPEAKS, SHAPE = f"{tiny.OWNER}SmolLM2-135M-Instruct", f"{tiny.OWNER}shape-3b"
SMOLLM = place.ROOT / "smollm2.gguf"
COMMITS = {SPEAKS: "d0e1218683981892d98f2bb48c976ee8fb05a5f0"}
WIDE = {
    "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
    "intermediate_size": 11008, "vocab_size": 151936, "max_position_embeddings": 32768, "max_window_layers": 36,
}  # fmt: skip


def publish(model: str, source: Path) -> None:
    store, entries = Store(str(place.MODELS)), []
    for file in sorted(source.iterdir()):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        entry = Entry(file.name, file.stat().st_size, digest, digest)
        blob = store.blob(model, entry)
        blob.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, blob)
        entries.append(entry)
    store.publish(Snapshot(model, COMMITS.get(model, "a" * 40), tuple(entries)))


def provide(model: str) -> None:
    """In the store of this machine, made once."""
    source = place.ROOT / "made" / model.rpartition("/")[2]
    if source.exists():
        return
    source.mkdir(parents=True)
    if model == SPEAKS:
        program = [sys.executable, "-m", "testbed.standins.hub.unpack", str(SMOLLM), str(source)]
        paths = os.pathsep.join(map(str, (place.PRODUCT, place.PRODUCT / "scripts", place.SITE)))
        subprocess.run(program, check=True, env={**os.environ, "PYTHONPATH": paths}, cwd=place.PRODUCT)
    else:
        tiny.write(source, tiny.RECITES)
    if model == SHAPE:
        config = json.loads((source / "config.json").read_text())
        (source / "config.json").write_text(json.dumps(config | WIDE))
        (source / "model.safetensors").unlink()
    publish(model, source)
