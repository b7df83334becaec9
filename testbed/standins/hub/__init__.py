"""A small model hub: what a real huggingface_hub client asks for, answered from generated weights. A stand-in."""
