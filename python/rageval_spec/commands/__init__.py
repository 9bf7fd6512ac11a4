"""What each command does. Its options and its help are in `cli.py`."""
