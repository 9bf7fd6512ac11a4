"""Why questions went wrong: which part of a system caused it, and what to try first."""
