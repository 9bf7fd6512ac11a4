"""Reads replies of chat models: their JSON, their one word or their numbered items; or says why they cannot be read.

A verdict is the whole reply, its whole last line, or the one JSON object that is the reply. All else is unreadable and
its question is retried: to pick a verdict out of other text would produce a number that the model did not give.
"""

from rageval_spec.endpoints.replies.json_text import UnreadableReplyError, drop_thoughts, put_in_order, quote_reply
from rageval_spec.endpoints.replies.schema_fitting import describe_format, read_reply, read_word

GRAMMAR = "2"
"""The version of the grammar, because findings depend on it. Stored replies do not: they are read again."""

__all__ = [
    "GRAMMAR",
    "UnreadableReplyError",
    "describe_format",
    "drop_thoughts",
    "put_in_order",
    "quote_reply",
    "read_reply",
    "read_word",
]
