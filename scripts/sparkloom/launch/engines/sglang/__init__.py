"""SGLang: all that it is."""
