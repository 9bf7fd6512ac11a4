"""`rageval-spec compare`: what changed between two evaluations, in numbers and question by question."""
