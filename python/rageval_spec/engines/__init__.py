"""What maps a step over its partitions: one file per word."""
