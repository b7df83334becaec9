"""What several tasks need of the machine that they run on."""
