"""Base classes for datasets."""
