"""What the metrics share: base classes, and what several of them compute."""
