"""Rankings and answers become values, and slices of queries."""
