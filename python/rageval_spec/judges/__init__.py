"""Judges, which give verdicts or grades: one file per word."""
