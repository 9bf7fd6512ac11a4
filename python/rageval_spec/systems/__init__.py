"""What is evaluated: one file per word."""
