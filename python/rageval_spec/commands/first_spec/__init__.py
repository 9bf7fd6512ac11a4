"""Writes a first spec for files that a user already has."""
