"""Forms: sheets as files that people fill in, and what they say when they come back."""
