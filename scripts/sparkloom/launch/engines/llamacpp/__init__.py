"""llama.cpp: all that it is."""
