"""The command `generate`."""
