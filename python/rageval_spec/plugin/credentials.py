"""Recognises keys, tokens and passwords that somebody wrote out, in specs and in lines of them."""

from __future__ import annotations

import math
import re
from collections import Counter

_KNOWN = (
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|(?:ghp|gho|ghs|ghu|glpat|hf|gsk|pcsk|xox[abprs]|npm|pypi)[_-][A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r")"
)
"""Keys that say by their beginning what they are."""
_SENSITIVE = r"[\w-]*(?:api[_-]?key|access[_-]?key|authorization|password|passwd|secret|token)(?![A-Za-z])[\w-]*"
_WRITTEN = (
    rf"(?:(?<=://)(?P<user>[^\s\"',]*)(?=@)"
    rf"|(?i:[?&]{_SENSITIVE}|[?&](?:key|sig))=(?P<query>[^\s\"'&#,}}]+)"
    rf"|(?<!\$\{{)(?i:\b{_SENSITIVE})[\"']?:\s*[\"']?(?:(?i:bearer|basic|token)\s+)?"
    rf"(?P<value>(?!\$\{{)[^\s\"',}}]{{8,}}))"
)
"""Credentials by where they stand: before the `@` of a URL, in its query, as the value of a key that asks for one."""
_SCHEME = r"(?i:(?:bearer|basic|token)\s+)"
_SHORTEST, _SHORTEST_KNOWN = 20, 19
_LEAST_BITS = 3.0
"""Of a character: words and names have less, keys that were drawn by chance have more."""


def is_key_name(name: str) -> bool:
    """Whether a key of a spec asks for something secret: `api_key`, `Authorization`."""
    return re.fullmatch(_SENSITIVE, name, re.IGNORECASE) is not None


def is_credential(text: str, name: str = "") -> bool:
    """Whether a value is a key or token written out; `name` is the key under which it stands.

    Without a name that asks for something secret, only those count whose beginning says what they are.
    """
    if len(text) < _SHORTEST_KNOWN:
        return False  # the patterns, which take their time to compile, are for few specs
    if re.search(_KNOWN, text):
        return True
    if not is_key_name(name):
        return False
    word = re.sub(_SCHEME, "", text.strip(), count=1)
    return len(word) >= _SHORTEST and not re.search(r"\s", word) and _measure(word) >= _LEAST_BITS


def hide_credentials(line: str) -> str:
    """A line of a spec in which an asterisk stands for each character of what looks like a credential."""
    return re.sub(_KNOWN, _hide, re.sub(_WRITTEN, _hide, line))


def _hide(found: re.Match[str]) -> str:
    start, end = next((found.span(name) for name in found.re.groupindex if found[name] is not None), found.span())
    before, after = found[0][: start - found.start()], found[0][end - found.start() :]
    return before + "*" * (end - start) + after


def _measure(word: str) -> float:
    """Bits of information a character, by how often each one comes."""
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts)
