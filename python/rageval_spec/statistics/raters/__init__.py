"""Judges and people as raters: agreement, correction by labels, calibration, guarantees."""
