"""Recognises keys, tokens and passwords written in plain text, in values and in lines of specs."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

_KNOWN = (
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|(?:ghp|gho|ghs|ghu|glpat|hf|gsk|pcsk|xox[abprs]|npm|pypi)[_-][A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]*"
    r")"
)
"""Keys that are recognisable by how they begin."""
_SENSITIVE = (
    r"[\w-]{0,64}"
    r"(?:api[_-]?key|access[_-]?key|authorization|password|passwd|secret|token(?!_f1))"
    r"(?![A-Za-z])[\w-]{0,64}"
)
"""Names of keys; `token_f1` is a metric.

Repetitions are bounded, here and above: a line of a megabyte is looked through in one go.
"""
_HEADER = r"(?:x-[\w-]{0,64})?key"
"""Names that hold a key if they name a header, but that other settings have too."""
_QUERY = rf"(?i:[?&](?:{_SENSITIVE}|key|sig|code))=(?P<query>[^\s\"'&#,}}]+)"
_WRITTEN = (
    rf"(?:{_QUERY}"
    rf"|(?<!\$\{{)(?i:\b{_SENSITIVE})[\"']?:\s*[\"']?(?:(?i:bearer|basic|token)\s+)?"
    rf"(?P<value>(?!\$\{{)[^\s\"',}}]{{8,}}))"
)
"""Credentials recognised by their place: in the query of a URL, or as the value of a secret key."""
_BEHIND_SCHEME = r"(?<=://)[^\s\"',]+"
"""A URL without its scheme; a user and a password may precede an `@` in it."""
_SCHEME = r"(?i:(?:bearer|basic|token)\s+)"
_SHORTEST, _SHORTEST_KNOWN = 20, 19
_LEAST_BITS = 3.0
"""Bits of entropy per character: words and names have fewer, random keys have more."""


def is_key_name(name: str) -> bool:
    """Whether a key of a spec takes a secret, as `api_key` and `Authorization` do."""
    return re.fullmatch(rf"{_SENSITIVE}|{_HEADER}", name, re.IGNORECASE) is not None


def is_credential(text: str, name: str = "") -> bool:
    """Whether a value is a key or token in plain text; `name` is the key of the spec that holds it.

    Under a name that does not take a secret, only values with a known prefix count.
    """
    if len(text) < _SHORTEST_KNOWN:
        return False  # few specs need the patterns, which are slow to compile
    if re.search(_KNOWN, text):
        return True
    if "://" in text:
        return any(_looks_random(found["query"]) for found in re.finditer(_QUERY, text))
    return is_key_name(name) and _looks_random(re.sub(_SCHEME, "", text.strip(), count=1))


def _looks_random(word: str) -> bool:
    return len(word) >= _SHORTEST and not re.search(r"\s", word) and _measure(word) >= _LEAST_BITS


@lru_cache(maxsize=8)  # every diagnostic on a long line asks for it
def hide_credentials(line: str) -> str:
    """A line of a spec with each character of what looks like a credential replaced by an asterisk."""
    return re.sub(_KNOWN, _hide, re.sub(_WRITTEN, _hide, re.sub(_BEHIND_SCHEME, _hide_user, line)))


def _hide_user(found: re.Match[str]) -> str:
    user, at, rest = found[0].rpartition("@")
    return "*" * len(user) + at + rest


def _hide(found: re.Match[str]) -> str:
    start, end = next((found.span(name) for name in found.re.groupindex if found[name] is not None), found.span())
    before, after = found[0][: start - found.start()], found[0][end - found.start() :]
    return before + "*" * (end - start) + after


def _measure(word: str) -> float:
    """The entropy of a word in bits per character, from how often each character occurs."""
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts)
