"""Base classes for judges."""
