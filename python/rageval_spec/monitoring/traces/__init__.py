"""Traces on their way: where they come from, which are judged, and what they are worth."""
