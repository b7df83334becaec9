"""The stand-in engine: takes the real launch command, judged by the real parser, and pretends only the GPU."""
