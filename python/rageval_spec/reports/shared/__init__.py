"""What several reports show."""
