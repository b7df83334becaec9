"""Judges engine command lines with the real argument parser of a real engine release.

No GPU, no torch, no model: the release's own Python files are taken from its wheel, heavy imports are stubbed, and the
parser that the engine itself would build is asked. The package needs nothing but the standard library at import time,
so the folder can be copied elsewhere (an image, a test machine) and used there as ``oracle``.
"""
