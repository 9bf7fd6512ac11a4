"""The functions for other programs: `evaluate` and `compare`."""
