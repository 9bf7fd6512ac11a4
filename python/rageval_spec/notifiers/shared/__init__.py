"""Base classes of notifiers."""
