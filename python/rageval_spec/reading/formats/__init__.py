"""One module a file format: from a path to rows with their places."""
