"""Evaluations drawn as text, Markdown, HTML and tables."""
