"""The shared nouns: tables, samples, claims, evaluations."""
