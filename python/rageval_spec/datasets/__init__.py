"""Where queries, documents and judgements come from: one file per word."""
