# vllm-glm53-flash-topk: vLLM of August 2026 for GLM 5.3 Flash on GB10, with the top-k of its indexer that 48 SMs need
# Written by `sparkloom image render`; changed in the recipe.
FROM ghcr.io/tonyd2wild/vllm-glm53-flash:sm121-v11-dflash2@sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6 AS build
ARG SOURCE_DATE_EPOCH
RUN --mount=type=cache,sharing=locked,id=apt-79a17002ca97-lists,target=/var/lib/apt/lists --mount=type=cache,sharing=locked,id=apt-79a17002ca97-archives,target=/var/cache/apt \
    rm -f /etc/apt/apt.conf.d/docker-clean && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates git \
    && mkdir -p /usr/share/sparkloom && dpkg-query -W > /usr/share/sparkloom/packages.txt \
    && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache
RUN git init -q /src && cd /src \
    && git fetch -q --depth 1 https://github.com/tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark 06b681991fb7ca6743c4fba535cdc7e8df78cd4b && git checkout -q FETCH_HEAD && test "$(git -C /src rev-parse HEAD)" = 06b681991fb7ca6743c4fba535cdc7e8df78cd4b \
    && git submodule update -q --init --recursive --depth 1 \
    && mkdir -p /usr/share/sparkloom && echo "https://github.com/tonyd2wild/GLM-5.3-Flash-NVFP4-DFlash2-2x-DGX-Spark main $(git rev-parse HEAD)" >> /usr/share/sparkloom/commits.txt
RUN grep -q 'multi_processor_count >= 78' /src/docker/sparse_attn_indexer_kpool_sm121.py
FROM ghcr.io/tonyd2wild/vllm-glm53-flash:sm121-v11-dflash2@sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6
ARG SOURCE_DATE_EPOCH
COPY --from=build /src/docker/sparse_attn_indexer_kpool_sm121.py /usr/local/lib/python3.12/dist-packages/vllm/model_executor/layers/sparse_attn_indexer_kpool.py
COPY --from=build /usr/share/sparkloom/commits.txt /usr/share/sparkloom/commits.txt
RUN grep -q 'multi_processor_count >= 78' /usr/local/lib/python3.12/dist-packages/vllm/model_executor/layers/sparse_attn_indexer_kpool.py
RUN python3 -m py_compile /usr/local/lib/python3.12/dist-packages/vllm/model_executor/layers/sparse_attn_indexer_kpool.py
LABEL org.opencontainers.image.base.digest="sha256:4def0ef644cb2e9814136dcffd5e385e21bc594f48f3b292234051904abe85a6" \
    org.opencontainers.image.base.name="ghcr.io/tonyd2wild/vllm-glm53-flash:sm121-v11-dflash2" \
    sparkloom.engine="vllm 0.30.0" \
    sparkloom.platform="sm121" \
    sparkloom.recipe="vllm-glm53-flash-topk" \
    sparkloom.recipe.sha256="1f5787d5db8532c52b604bf748214c030204ea045f8eb9d0fc386e16ae11d3c7"
