"""One module a family of tokenizers, with the same names in each."""
