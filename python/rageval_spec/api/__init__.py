"""What other programs call: `evaluate` and `compare`."""
