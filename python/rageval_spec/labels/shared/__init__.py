"""What the words of `labels:` share."""
