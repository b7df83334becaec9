"""Everything that a rendered rank needs on a machine with a GPU and no way out, as one small folder."""
