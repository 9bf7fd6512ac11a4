"""Base classes for systems."""
