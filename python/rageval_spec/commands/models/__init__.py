"""`rageval-spec models`: embedding models, and how fast they are."""
