"""The virtual machines' kernel, system and disk."""
