"""How K3s is brought up, step by step, and judged."""
