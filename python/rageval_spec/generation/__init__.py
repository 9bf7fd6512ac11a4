"""Makes questions from a user's own documents: a test set without people, or with their review."""
