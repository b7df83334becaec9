"""Other people's recipes as a judge of the importer: read from a folder that is no part of this repository."""
