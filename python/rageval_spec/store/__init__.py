"""What is kept between evaluations: tables, replies, and how files are written."""
