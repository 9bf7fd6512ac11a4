"""The page of the report `html`: its head, and the questions as data."""
