"""The context of llama.cpp's image: built from source with RPC for SM121, with the Python that a supervisor needs.

The project's own CUDA images have no RPC, so two Sparks cannot share a model with them. Programs go where the release's
catalog says that they are, under both names that builds gave the lender.
"""

from __future__ import annotations

import json
import re

from sparkloom.base.errors import InputError
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import engines
from sparkloom.onnode.images.reference import DIGEST

SOURCE = "https://github.com/ggml-org/llama.cpp"
CUDA = "nvidia/cuda:13.0.2-{kind}-ubuntu24.04"  # 13.0: the toolkit of DGX OS 7; 12.8 knows no sm_121
FLAGS = {
    "CMAKE_BUILD_TYPE": "Release",
    "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
    "CMAKE_CUDA_ARCHITECTURES": "121a-real",
    "CMAKE_EXE_LINKER_FLAGS": "-Wl,--allow-shlib-undefined",  # the driver's library is not in an image
    "CMAKE_INSTALL_RPATH": "'$ORIGIN'",
    "GGML_BACKEND_DL": "ON",  # so that programs start without the driver, as in the last step of the build
    "GGML_CPU_ALL_VARIANTS": "ON",
    "GGML_CUDA": "ON",
    "GGML_NATIVE": "OFF",
    "GGML_RPC": "ON",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",  # Traefik ends TLS, and nothing is downloaded
}
BUILD_NEEDS = "build-essential ca-certificates cmake git ninja-build"
RUN_NEEDS = "libgomp1 python3"  # its supervisor is Python
APT = "apt-get update && apt-get install -y --no-install-recommends {} && rm -rf /var/lib/apt/lists/*"


def context(loaded: LoadedProfile, digest: str, run_digest: str) -> dict[str, bytes]:
    """File in the build's folder -> contents; `digest` is of the image that compiles, the other of the one below it."""
    for given, option in ((digest, "--digest"), (run_digest, "--run-digest")):
        if not DIGEST.fullmatch(given):
            kind = CUDA.format(kind="devel" if option == "--digest" else "runtime")
            message = f"'{given}' is no image digest; expected sha256: and 64 hex digits of {kind} for arm64 ({option})"
            raise InputError.single(loaded.document.file, message, rule="bad-digest")
    return {"Dockerfile": dockerfile(loaded, digest, run_digest).encode()}


def dockerfile(loaded: LoadedProfile, digest: str, run_digest: str) -> str:
    engine = loaded.profile.engine
    build, *_ = re.findall(r"\d+", engine.release)
    flags = " \\\n      ".join(f"-D{name}={value}" for name, value in {**FLAGS, "LLAMA_BUILD_NUMBER": build}.items())
    devel, run = CUDA.format(kind="devel"), CUDA.format(kind="runtime")
    labels = {
        "org.opencontainers.image.base.name": run,
        "org.opencontainers.image.base.digest": run_digest,
        "sparkloom.engine": f"{engine.name} {engine.release}",
        "sparkloom.platform": "sm121",
    }
    return (
        f"# For {loaded.name}, by `python -m scripts.image context`; not built where it was written.\n"
        f"# On a Spark: docker build -t {engine.image} .\n"
        f"FROM {devel}@{digest} AS build\n"
        f"RUN {APT.format(BUILD_NEEDS)}\n"
        f"RUN git clone --depth 1 --branch {engine.release} {SOURCE} /src\n"
        "WORKDIR /src\n"
        f"RUN cmake -B build -G Ninja \\\n      {flags}\n"
        "RUN cmake --build build\n"
        f"RUN {gather(engine.release)}\n"
        f"FROM {run}@{run_digest}\n"
        f"RUN {APT.format(RUN_NEEDS)}\n"
        "COPY --from=build /app /app\n"
        "LABEL \\\n" + " \\\n".join(f"  {name}={json.dumps(value)}" for name, value in labels.items()) + "\n"
    )


def gather(release: str) -> str:
    """Shell words: programs and libraries into one folder, every name of the lender, and the proof that it has RPC."""
    programs = engines.catalog("llamacpp", release).programs
    server, names = programs["llama-server"][0], programs["rpc-server"]
    folder = server.rpartition("/")[0]
    links = "".join(
        f' && {{ [ -e {name} ] || ln -s "$(cd {folder} && ls -d *rpc-server | head -1)" {name}; }}' for name in names
    )
    # the option stands in the help only when the RPC backend was found; grep reads on, or the server dies of its pipe
    proof = f" && {server} --help | grep -e '--rpc' > /dev/null"
    copied = "build/bin/llama-server build/bin/*rpc-server build/bin/*.so*"
    return f"mkdir -p {folder} && cp -a {copied} {folder}{links}{proof}"
