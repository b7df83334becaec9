"""What is there now: read, waited for, put right, taken away."""
