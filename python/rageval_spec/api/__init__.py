"""What other programs call: `evaluate` and `compare` for runs, `run` and `judge` for specs and answers."""
