"""One file or folder for each command: its options, its help and its work."""
