"""`rageval-spec init`: a sample to start from, or a first spec for files that are already there."""
