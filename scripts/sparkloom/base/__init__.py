"""What every room stands on: problems, findings, positions in files, whole files, visible text."""
