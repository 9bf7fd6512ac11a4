"""What people judge about answers: samples for them, their labels, and how well they agree."""
