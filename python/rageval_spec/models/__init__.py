"""Models that systems, metrics and judges use: one file per word."""
