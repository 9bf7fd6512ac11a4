"""What people look at: the page of a monitor, and the answers that become a test set."""
