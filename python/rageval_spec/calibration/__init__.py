"""What a judge's values are worth: how close they come to people's labels."""
