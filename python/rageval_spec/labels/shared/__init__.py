"""What the plugins of labels share."""
