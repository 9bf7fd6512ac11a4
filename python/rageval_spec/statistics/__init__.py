"""Aggregates of values, their intervals, and comparisons between systems."""
