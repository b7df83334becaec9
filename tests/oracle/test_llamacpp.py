"""What a llama.cpp build prints for --help, read as facts. The lines are ours, in its layout."""

from __future__ import annotations

from scripts.oracle import llamacpp

HELP = """----- common params -----

-h,    --help, --usage                  print usage and exit
-t,    --threads N                      how many threads (default: -1)
                                        (env: LLAMA_ARG_THREADS)
--kv-offload, -kvo, --no-kv-offload, -nkvo
                                        whether to keep the cache there (default:
                                        enabled)
-ctk,  --cache-type-k TYPE              a type
                                        allowed values: f32, f16, q8_0
                                        (default: f16)
-lm,   --load-mode MODE                 how (default: auto)
                                        - auto: by itself
                                        - none: plainly
                                        - mmap+mlock: both
-ngl,  --gpu-layers, --n-gpu-layers N   number of layers, or 'auto' (default: auto)
--poll <0|1>                            whether (default: same as above)
-dev,  --device <dev1,dev2,..>          which
-sm,   --split-mode {none,layer,row}    where
--temp N                                how warm (default: 0.80)
--range START END                       from and to
--chat-template-kwargs STRING           a valid json object
-fa,   --flash-attn [on|off|auto]       whether
--metrics                               counters
-dt,   --defrag-thold N                 a threshold (DEPRECATED)
"""
LENDER = """options:
  -h, --help                       show this help message and exit
  -H, --host HOST                  where (default: 127.0.0.1)
  -p, --port PORT                  which (default: 50052)
  -c, --cache                      keep
"""


def test_each_flag_is_what_its_line_says() -> None:
    assert llamacpp.flags(HELP) == {
        "--help": {"also": ["-h", "--usage"], "action": "exit"},
        "--threads": {"also": ["-t"], "type": "int", "default": -1},
        "--kv-offload": {"also": ["-kvo"], "action": "toggle", "off": ["--no-kv-offload", "-nkvo"]},
        "--cache-type-k": {"also": ["-ctk"], "choices": ["f16", "f32", "q8_0"], "default": "f16"},
        "--load-mode": {"also": ["-lm"], "choices": ["auto", "mmap+mlock", "none"], "default": "auto"},
        "--gpu-layers": {"also": ["-ngl", "--n-gpu-layers"]},
        "--poll": {"choices": ["0", "1"]},
        "--device": {"also": ["-dev"]},
        "--split-mode": {"also": ["-sm"], "choices": ["layer", "none", "row"]},
        "--temp": {"type": "float"},
        "--range": {"nargs": 2},
        "--chat-template-kwargs": {"type": "json_object"},
        "--flash-attn": {"also": ["-fa"], "choices": ["auto", "off", "on"]},
        "--metrics": {"action": "true"},
        "--defrag-thold": {"also": ["-dt"], "deprecated": True},
    }


def test_the_lender_has_its_own_list() -> None:
    assert llamacpp.lender(LENDER) == {
        "--help": {"also": ["-h"], "action": "exit"},
        "--host": {"also": ["-H"], "default": "127.0.0.1"},
        "--port": {"also": ["-p"], "type": "int", "default": 50052},
        "--cache": {"also": ["-c"], "action": "true"},
    }
