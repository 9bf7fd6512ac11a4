"""Reports of an evaluation; one file for each word of `use:`."""
