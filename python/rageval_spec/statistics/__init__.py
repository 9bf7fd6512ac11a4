"""Aggregates, intervals and percentiles."""
