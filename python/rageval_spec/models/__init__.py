"""Models that systems, metrics and judges run: one file per word."""
