"""`python3 -m sglang.launch_server ...` arrives here inside the stand-in image."""

from standin.main import main

main("sglang")
