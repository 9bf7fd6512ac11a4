"""What each command does; `cli.py` has the options and the help."""
