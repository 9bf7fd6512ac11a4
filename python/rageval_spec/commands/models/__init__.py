"""`rageval-spec models`: list, export and measure models."""
