"""Functions of a user that a spec names: where they are, and how they are called."""
