"""Evaluate retrieval and RAG systems: exact numbers, intervals, and a verdict a pipeline can act on."""
