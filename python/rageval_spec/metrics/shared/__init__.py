"""Base classes for metrics."""
