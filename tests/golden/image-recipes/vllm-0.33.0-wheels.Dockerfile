# vllm-0.33.0-wheels: vLLM 0.33.0 of its released aarch64 wheel on CUDA 13.0, every package by its sha256
# Written by `sparkloom image render`; changed in the recipe.
FROM docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6
ARG SOURCE_DATE_EPOCH
RUN --mount=type=cache,sharing=locked,id=apt-a1fb365984c6-lists,target=/var/lib/apt/lists --mount=type=cache,sharing=locked,id=apt-a1fb365984c6-archives,target=/var/cache/apt \
    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends build-essential ibverbs-providers libibverbs1 libnuma1 librdmacm1 libxcb1 ninja-build python3 python3-dev python3-pip rdma-core \
    && mkdir -p /usr/share/sparkloom && dpkg-query -W > /usr/share/sparkloom/packages.txt \
    && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache
RUN --mount=type=cache,id=pip,target=/root/.cache/pip --mount=type=bind,source=requirements.txt,target=/tmp/requirements.txt \
    PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-deps --only-binary :all: --no-input \
    --root-user-action ignore --require-hashes -r /tmp/requirements.txt
ENV CUDA_HOME="/usr/local/cuda"
ENV TORCH_CUDA_ARCH_LIST="12.1a"
ENV TRITON_PTXAS_PATH="/usr/local/cuda/bin/ptxas"
RUN python3 -c "from importlib.metadata import version; assert version('vllm') == '0.33.0', version('vllm')"
RUN command -v vllm && command -v ptxas && command -v nvcc
LABEL org.opencontainers.image.base.digest="sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6" \
    org.opencontainers.image.base.name="docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04" \
    sparkloom.engine="vllm 0.33.0" \
    sparkloom.platform="sm121" \
    sparkloom.recipe="vllm-0.33.0-wheels" \
    sparkloom.recipe.sha256="53fbceb1901ebd8ca4cb2a1dd9ee3e5b8d0dbab6f22d4503dd2156ebd9d151d3"
