#!/bin/bash
# my evening script, works on my four boxes
set -euo pipefail
MODEL=${MODEL:-nvidia/GLM-4.7-NVFP4}
PORT=${PORT:-30000}
cat >/tmp/overrides.json <<'JSON'
{"max_position_embeddings": 202752}
JSON
if [ -f ~/.env ]; then source ~/.env; fi
for node in spark1 spark2 spark3 spark4; do
  echo "starting on $node"
done
python3 -m sglang.launch_server \
  --model-path "$MODEL" \
  --tp-size 4 --nnodes 4 --node-rank ${RANK:-0} \
  --dist-init-addr 192.168.100.11:20000 \
  --quantization modelopt_fp4 \
  --port "$PORT" --mem-fraction-static 0.8
