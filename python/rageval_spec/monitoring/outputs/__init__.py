"""What leaves a monitor: numbers, rules and a dashboard, and values for the tools that keep the traces."""
