"""Stand-in for the sglang package's entry point; the real package is what judges the command line (see standin/judge.py)."""
