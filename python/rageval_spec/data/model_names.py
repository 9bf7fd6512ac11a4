"""Tells whether two names mean the same language model, or models of one family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Kinship = Literal["same", "family"]
"""`same`: one model, in whatever release, size of numbers or place. `family`: models of one maker's line."""

_PROVIDER = re.compile(
    r"^(?:(?:[a-z]{2,4}\.)?(?:anthropic|meta|amazon|mistral|cohere|ai21|deepseek|openai|qwen|google)\.|.*/)"
)
"""What hosts put before a name: `us.anthropic.`, `openai/`, `accounts/fireworks/models/`."""
_RELEASE = re.compile(
    r"@[\w.-]+$|-v\d+:\d+$|[-_:.]\d{4}-\d{2}-\d{2}|[-_@]20\d{6}|[-_](?:0\d{2}|\d{2}-\d{2}|[01]\d[0-3]\d|2[3-9](?:0[1-9]|1[0-2]))$"
)
"""Dates and numbers of releases: `-2024-08-06`, `@20240229`, `-v1:0`, `-002`, `-05-06`, `-0613`, `-2411`."""
_TOKEN = re.compile(r"[a-z]+|\d+")
_NOISE = frozenset(
    (
        *("meta", "hf", "instruct", "it", "chat", "latest", "preview", "exp", "experimental", "online", "free"),
        *("gguf", "ggml", "awq", "gptq", "mlx", "bnb", "exl", "fp", "bf", "nf", "int", "bit", "f", "q", "k", "m", "s"),
    )
)
"""Tokens that do not tell models apart: training for chats, formats, the size of numbers."""
_SIZES = re.compile(r"(?:[-_:](?:i?q\d(?:_[a-z0-9]+)*|(?:fp|bf|int|f|nf)\d+|\d+bit|awq|gptq|gguf|mlx))+$")
_FAMILIES: Mapping[str, str] = {
    **{name: name for name in ("claude", "command", "deepseek", "falcon", "gemini", "gemma", "glm", "gpt", "granite")},
    **{name: name for name in ("grok", "jamba", "kimi", "llama", "mistral", "nova", "olmo", "phi", "qwen", "yi")},
    **dict.fromkeys(("chatgpt", "o", "davinci"), "gpt"),
    **dict.fromkeys(("mixtral", "ministral", "codestral", "magistral", "pixtral", "devstral"), "mistral"),
    **dict.fromkeys(("qwq", "qvq"), "qwen"),
    "codellama": "llama",
    "codegemma": "gemma",
}
"""The family of each line of models, by the first word of its name."""


def compare_models(one: str, other: str) -> Kinship | None:
    """How two models are related, by their names as people and endpoints write them; None if they are not.

    >>> compare_models("gpt-4o-2024-08-06", "openai/gpt-4o")
    'same'
    >>> compare_models("llama3.1:8b", "meta-llama/Llama-3.1-70B-Instruct")
    'family'
    >>> compare_models("gpt-4o", "claude-3-5-sonnet") is None
    True
    """
    if one.strip() and one.strip().casefold() == other.strip().casefold():
        return "same"
    first, second = _read(one), _read(other)
    if first == second:
        return "same" if first else None
    families = _find_family(first), _find_family(second)
    return "family" if families[0] is not None and families[0] == families[1] else None


def _read(name: str) -> tuple[str, ...]:
    """The tokens of a name that tell the model apart from others."""
    text = _PROVIDER.sub("", name.strip().casefold())
    text = text.removesuffix(":latest")
    for pattern in (_SIZES, _RELEASE):
        text = pattern.sub("", text)
    return tuple(token for token in _TOKEN.findall(text) if token not in _NOISE)


def _find_family(tokens: tuple[str, ...]) -> str | None:
    return _FAMILIES.get(tokens[0]) if tokens else None
