"""Values become an evaluation: aggregates, slices, causes, and where the numbers come from."""
