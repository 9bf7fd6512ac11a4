"""Reads replies of chat models: their JSON, their one word or their numbered items; or says why they cannot be read.

A reading counts only if nothing else in the reply contradicts it. A reply that says two things is unreadable and its
question is retried: a choice between the two would produce a number that the model did not give.
"""

from rageval_spec.endpoints.replies.items import put_in_order
from rageval_spec.endpoints.replies.reading import read_reply
from rageval_spec.endpoints.replies.schemas import describe_format
from rageval_spec.endpoints.replies.thoughts import drop_thoughts
from rageval_spec.endpoints.replies.unreadable import UnreadableReplyError, quote_reply
from rageval_spec.endpoints.replies.words import read_word

__all__ = [
    "UnreadableReplyError",
    "describe_format",
    "drop_thoughts",
    "put_in_order",
    "quote_reply",
    "read_reply",
    "read_word",
]
