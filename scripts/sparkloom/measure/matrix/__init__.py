"""A grid of configurations, run cell by cell, and its report."""
