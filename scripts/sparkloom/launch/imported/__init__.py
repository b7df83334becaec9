"""Others' launches as profiles: what an importer found, said in the words of this house."""
