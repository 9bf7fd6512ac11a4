"""What replies of chat models come to: their JSON, their one word, their numbered items, or why they cannot be read.

A reading counts only where nothing else in the reply speaks against it. A reply that says two things is unreadable, and
its question is asked again: to pick one of them would make a number of what nobody said.
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
