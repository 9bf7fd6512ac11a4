"""The text of a spec: a tree of keys and values with positions, and variables."""
