"""What gives each query a value: one file per word."""
