"""The command `review`: what people judge about answers."""
