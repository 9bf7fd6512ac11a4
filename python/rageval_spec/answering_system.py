"""What the systems that answer questions share."""
