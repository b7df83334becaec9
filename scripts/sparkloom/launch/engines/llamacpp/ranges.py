"""llama.cpp's numbers; it takes negative ones for its own choice in some places and as sizes in others."""

from sparkloom.launch.ranges import COUNT, MAYBE, or_else

RANGES = {
    "ctx_size": MAYBE,  # 0: as long as the model's own
    "parallel": or_else(COUNT, -1),  # -1: by itself
    "batch_size": COUNT,
    "ubatch_size": COUNT,
    "threads": or_else(COUNT, -1),
}
