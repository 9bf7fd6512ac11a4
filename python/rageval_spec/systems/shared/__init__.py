"""What the systems share: asking, templates, programs and traces."""
