"""Computes the steps of a plan, loads those that are stored, and decides when to stop."""
