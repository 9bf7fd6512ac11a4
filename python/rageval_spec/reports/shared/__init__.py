"""What the reports share."""
