"""The command `calibrate`: what a judge's values are worth beside people's labels."""
