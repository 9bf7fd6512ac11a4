"""Tokenizers from the files that models had before `tokenizer.json`: SentencePiece models and vocabularies."""
