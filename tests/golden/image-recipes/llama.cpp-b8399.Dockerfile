# llama.cpp-b8399: llama.cpp b8399 with RPC, for SM121, with the Python that a rank's supervisor needs
# Written by `sparkloom image render`; changed in the recipe.
FROM docker.io/nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6 AS build
ARG SOURCE_DATE_EPOCH
RUN --mount=type=cache,sharing=locked,id=apt-a1fb365984c6-lists,target=/var/lib/apt/lists --mount=type=cache,sharing=locked,id=apt-a1fb365984c6-archives,target=/var/cache/apt \
    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends build-essential ca-certificates cmake git ninja-build \
    && mkdir -p /usr/share/sparkloom && dpkg-query -W > /usr/share/sparkloom/packages.txt \
    && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache
RUN git init -q /src && cd /src \
    && git fetch -q --depth 1 https://github.com/ggml-org/llama.cpp b8399 && git checkout -q FETCH_HEAD \
    && git submodule update -q --init --recursive --depth 1 \
    && mkdir -p /usr/share/sparkloom && echo "https://github.com/ggml-org/llama.cpp b8399 $(git rev-parse HEAD)" >> /usr/share/sparkloom/commits.txt
WORKDIR /src
RUN cmake -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_CUDA_ARCHITECTURES=121a-real -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined "-DCMAKE_INSTALL_RPATH=\$ORIGIN" -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DGGML_CUDA=ON -DGGML_NATIVE=OFF -DGGML_RPC=ON -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_NUMBER=8399 -DLLAMA_BUILD_TESTS=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF
RUN cmake --build build --parallel 8
RUN mkdir -p /app && cp -a build/bin/llama-server build/bin/*rpc-server build/bin/*.so* /app
RUN cd /app && for name in rpc-server ggml-rpc-server; do [ -e $name ] || ln -s "$(ls -d *rpc-server | head -1)" $name; done
FROM docker.io/nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2
ARG SOURCE_DATE_EPOCH
RUN --mount=type=cache,sharing=locked,id=apt-f45675c23360-lists,target=/var/lib/apt/lists --mount=type=cache,sharing=locked,id=apt-f45675c23360-archives,target=/var/cache/apt \
    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libgomp1 python3 \
    && mkdir -p /usr/share/sparkloom && dpkg-query -W > /usr/share/sparkloom/packages.txt \
    && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache
COPY --from=build /app /app
COPY --from=build /usr/share/sparkloom/commits.txt /usr/share/sparkloom/commits.txt
RUN /app/llama-server --help | grep -e '--rpc' > /dev/null
RUN test -x /app/rpc-server && test -x /app/ggml-rpc-server
RUN python3 --version
LABEL org.opencontainers.image.base.digest="sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2" \
    org.opencontainers.image.base.name="docker.io/nvidia/cuda:13.0.2-runtime-ubuntu24.04" \
    sparkloom.engine="llamacpp b8399" \
    sparkloom.platform="sm121" \
    sparkloom.recipe="llama.cpp-b8399" \
    sparkloom.recipe.sha256="d73eed1374bb72f392d58c9a5de9c3bfd845dba1e29ffb42c9eb50f09eb847e5"
