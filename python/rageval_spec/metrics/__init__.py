"""Metrics, which give each query a value: one file per word."""
