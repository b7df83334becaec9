"""What a published checkpoint's own files say: config.json, the packer's words, the index and headers of its tensors.

`reading.read("org/name")` or `reading.read("/a/folder")` gives a `Checkpoint`; `as_model` makes of it the `model:` of a
profile, each fact with its source. Weights are never read.
"""
