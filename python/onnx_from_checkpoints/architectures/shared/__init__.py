"""What the architectures share: the graph under construction, and layers that read their own weights."""
