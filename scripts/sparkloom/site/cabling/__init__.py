"""How the Sparks are cabled: read on all of them at once, judged together, written as a fabric.yml."""
