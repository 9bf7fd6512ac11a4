"""Reads replies of chat models: their JSON, their one word or their numbered items; or says why they cannot be read.

A reading counts only if nothing else in the reply contradicts it. A reply that says two things is unreadable and its
question is retried: a choice between the two would produce a number that the model did not give.
"""

from rageval_spec.endpoints.replies.json_text import UnreadableReplyError, drop_thoughts, put_in_order, quote_reply
from rageval_spec.endpoints.replies.option_words import read_word
from rageval_spec.endpoints.replies.schema_fitting import describe_format, read_reply

__all__ = [
    "UnreadableReplyError",
    "describe_format",
    "drop_thoughts",
    "put_in_order",
    "quote_reply",
    "read_reply",
    "read_word",
]
