"""What the metrics of answers share."""
