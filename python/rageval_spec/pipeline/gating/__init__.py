"""Gates on aggregates: bounds, baselines, and what each gate came to."""
