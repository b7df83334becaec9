"""A pacing server: a stand-in for an engine whose every token has a known time. See docs/reference/load.md."""
