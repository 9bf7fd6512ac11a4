"""Looks for what is wrong with a test set: its questions, gold answers and judgements, its size and its mix."""
