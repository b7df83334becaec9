"""A profile for a model that has none: facts from its own files, a placement by arithmetic, flags by who ran its like.

`draft()` composes it, `page` writes it as a file that a person can go on with, `comparing` says where a profile that
exists and the checkpoint that it names disagree. Nothing here was run, and what it makes says so.
"""
