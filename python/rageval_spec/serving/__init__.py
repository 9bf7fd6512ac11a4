"""What answers over HTTP: numbers and health of a monitor, and checks of answers before users see them."""
