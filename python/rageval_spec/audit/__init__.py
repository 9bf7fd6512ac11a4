"""Looks for what is wrong with a test set: with its questions, gold answers and judgements, and with its size and mix."""
