"""What notifiers share."""
