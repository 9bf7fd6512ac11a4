"""Marks with which chat templates structure a conversation, and which a text in it must not forge.

Many servers read them out of a message's text as they read their own: `<|im_start|>`, `[INST]`, `<s>`.
"""

from __future__ import annotations

import re

BRACKETED = r"\[(?=/?[a-z]?[A-Z][A-Z0-9_]{2,}\])"
"""What opens `[INST]`, `[SYSTEM_PROMPT]`, `[gMASK]`: any word in capitals, because each model has its own."""
DRAWN = "◁"
"""What opens Kimi's marks."""
FULL_WIDTH = "<(?=[｜▁])"
"""What opens DeepSeek's marks."""
_TOKEN = re.compile(
    rf"{BRACKETED}|{DRAWN}|{FULL_WIDTH}|<(?=\||</?SYS>>|/?(?:s|bos|eos|pad|unk|sop|eop)>|(?:start|end)_of_\w+>)"
)


def defuse(text: str) -> str:
    """A text with a space after what opens a mark, which is none then."""
    return _TOKEN.sub(lambda found: f"{found.group()} ", text)
