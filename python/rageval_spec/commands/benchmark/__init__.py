"""`rageval-spec benchmark`: compare retrievers on BEIR folders."""
