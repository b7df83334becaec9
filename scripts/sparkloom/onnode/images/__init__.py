"""A node's images: which it has under which digest, and pulling one while somebody watches."""
