"""What other programs call: `evaluate` and `compare` for runs, `run`, `judge` and `calibrate` for specs and answers."""
