"""The page of the report `html`: its data, its parts, and the shell that shows them."""
