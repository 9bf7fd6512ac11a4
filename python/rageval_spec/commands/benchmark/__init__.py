"""`rageval-spec benchmark`: BEIR's table for some retrievers and some folders."""
