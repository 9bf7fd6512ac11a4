"""Tests of `rageval_spec.diagnosis`."""
