"""Production, watched: traces are judged as they come, windows of values are compared, and alerts are sent."""
