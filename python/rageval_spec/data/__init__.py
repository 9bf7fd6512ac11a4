"""The types that every layer shares: tables, samples, claims, evaluations."""
