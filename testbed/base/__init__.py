"""What every part of the test bed stands on: commands, names, steps with their times, kept artefacts."""
