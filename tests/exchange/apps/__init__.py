"""Small RAG applications, each built with another framework, whose spans are golden files of tests. See README.md."""
