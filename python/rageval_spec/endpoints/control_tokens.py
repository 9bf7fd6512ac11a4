"""Control tokens of chat templates (`<|im_start|>`, `[INST]`, `<s>`), which a text must not forge.

Many servers interpret them in the text of a message as if the template had written them.
"""

from __future__ import annotations

import re

BRACKETED = r"\[(?=/?[a-z]?[A-Z][A-Z0-9_]{2,}\])"
"""The opening of `[INST]`, `[SYSTEM_PROMPT]`, `[gMASK]`: any word in capitals, because each model has its own."""
DRAWN = "◁"
"""The opening of Kimi's control tokens."""
FULL_WIDTH = "<(?=[｜▁])"
"""The opening of DeepSeek's control tokens."""
_TOKEN = re.compile(
    rf"{BRACKETED}|{DRAWN}|{FULL_WIDTH}|<(?=\||</?SYS>>|/?(?:s|bos|eos|pad|unk|sop|eop)>|(?:start|end)_of_\w+>)"
)


def defuse(text: str) -> str:
    """The text with a space after each opening of a control token, which is then not one any more."""
    return _TOKEN.sub(lambda found: f"{found.group()} ", text)
