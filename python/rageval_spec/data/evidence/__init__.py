"""What answers rest on: passages of documents, nuggets that a good answer has, and citations."""
