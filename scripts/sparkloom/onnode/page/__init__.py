"""The page of a site: a small server in the cluster that shows what is served, and lets a key's owner try a model."""
