"""Keeps secrets out of everything that is stored, shown or logged.

`Secret` is text that can hold secrets and shows them only through `reveal()`. A node's field of this type is the only
place where a spec may say `${secret:VAR}`:

    api_key: Secret = Field(description="The key of the endpoint, as `${secret:VAR}`.")

Secrets are removed also in the encodings that servers echo. Keys, tokens and passwords written in plain text are
recognised in values and in lines of specs.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from pydantic_core import core_schema

from rageval_spec.libraries import compile_later

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler


MARK = "\0"
"""Marks a text with unrevealed secrets between the reading of a spec and the building of its nodes. YAML cannot
contain it."""
MASK = "***"


class Secret:
    """A text with its secrets filled in, shown as it was written: `Bearer ${secret:KEY}`.

    `str()`, `repr()` and a node's dump give the text as written, so a cache key or a report names the secret but does
    not hold it. A text written out in the spec is shown as `***`. `reveal()` gives the text itself.
    """

    __slots__ = ("_text", "_written")

    def __init__(self, text: str, written: str = MASK) -> None:
        """Hold `text`, and show `written` in its place."""
        self._text = text
        self._written = written

    def reveal(self) -> str:
        """The text with its secrets."""
        return self._text

    def __str__(self) -> str:
        """The text as it is written in the spec."""
        return self._written

    def __repr__(self) -> str:
        """The text as written, never the secret."""
        return f"Secret({self._written!r})"

    def __eq__(self, other: object) -> bool:
        """Whether both have the same text, written in the same way."""
        if not isinstance(other, Secret):
            return NotImplemented
        return (self._text, self._written) == (other._text, other._written)

    def __hash__(self) -> int:
        """The hash of the text as written, so that it tells nothing about the secret."""
        return hash(self._written)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """A string in YAML and in the JSON Schema; a `Secret` or a string in Python."""
        from_text = core_schema.with_info_after_validator_function(_fill_in, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=from_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), from_text]),
            serialization=core_schema.to_string_ser_schema(),
        )


def _fill_in(text: str, info: core_schema.ValidationInfo) -> Secret:
    """`text`, or the text with its secrets that the validation's context has for the marked `text`."""
    if text.startswith(MARK):
        return Secret((info.context or {}).get(text, ""), text.removeprefix(MARK))
    return Secret(text)


SHORTEST = 4
"""Characters of a secret; shorter words occur in many texts by chance."""
_LONG_ENOUGH = 8
"""Characters of a part of a secret that are worth hiding."""
_SCHEMES = frozenset({"basic", "bearer", "token", "apikey"})
_PLAIN = compile_later(r"[A-Za-z0-9_.~-]*")
"""Characters that URLs and HTML do not escape."""


class Redactor:
    """Masks its secrets as `***`.

    A redactor finds each secret in plain text, in base64 (with and without padding, in both alphabets, by itself or in
    a longer text such as `user:password`), escaped as in JSON, HTML and URLs, and with its end cut off, if at least its
    first half and at least 8 characters are left. Authentication schemes such as `Bearer` are not part of a secret.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        """Mask these secrets; those of fewer than 4 characters are ignored."""
        words = {word for secret in secrets for word in _list_words(secret)}
        self._secrets = sorted((word for word in words if len(word) >= SHORTEST), key=len, reverse=True)

    def redact(self, text: str) -> str:
        """The text with its secrets masked; the same object if it holds none."""
        if not self._secrets:
            return text
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return self._redact_parts(self._redact_escaped(text))

    def redact_bytes(self, content: bytes) -> bytes:
        """As `redact`, for UTF-8 bytes; the same object if they hold no secret."""
        if not self._secrets:
            return content
        text = content.decode("utf-8", "surrogateescape")
        redacted = self.redact(text)
        return content if redacted == text else redacted.encode("utf-8", "surrogateescape")

    @property
    def longest(self) -> int:
        """The length of the longest form of a secret, in characters; 0 without secrets."""
        return max(map(len, self._forms), default=0)

    @cached_property
    def _forms(self) -> list[str]:
        forms = {form for secret in self._secrets for form in _encode(secret)}
        return sorted((form for form in forms if len(form) >= SHORTEST), key=len, reverse=True)

    @cached_property
    def _beginnings(self) -> dict[str, str]:
        """Each secret by the shortest beginning of it that is worth hiding."""
        forms = (form for secret in self._secrets for form in (secret, b64encode(_to_bytes(secret)).decode("ascii")))
        return {form[: max(_LONG_ENOUGH, -(-len(form) // 2))]: form for form in forms if len(form) > _LONG_ENOUGH}

    def _redact_parts(self, text: str) -> str:
        for beginning, secret in self._beginnings.items():
            place = text.find(beginning)
            while place >= 0:
                end = place + _count_equal(text, place, secret)
                text = text[:place] + MASK + text[end:]
                place = text.find(beginning, place + len(MASK))
        return text

    def _redact_escaped(self, text: str) -> str:
        """Mask secrets whose characters are escaped in different ways."""
        if any(sign in text for sign in self._signs):
            for pattern in self._escaped:
                text = pattern.sub(MASK, text)
        return text

    @cached_property
    def _signs(self) -> tuple[str, ...]:
        """Strings without which a text cannot hold an escaped secret. Few texts have one, and the patterns are slow."""
        is_plain = all(_PLAIN.fullmatch(secret) for secret in self._secrets)
        if not is_plain:
            return ("\\", "%", "&")
        firsts = {f"%{ord(secret[0]):02x}" for secret in self._secrets}
        return ("\\u00", "&#", *firsts, *map(str.upper, firsts))

    @cached_property
    def _escaped(self) -> list[re.Pattern[str]]:
        return [re.compile("".join(map(_match_character, secret))) for secret in self._secrets]


def _list_words(secret: str) -> Iterator[str]:
    """The secret, what follows its scheme, and its long words: of `Bearer abc`, `abc` must not be shown either."""
    scheme, _, rest = secret.strip().partition(" ")
    if scheme.lower() in _SCHEMES:
        yield rest.strip()
        return
    yield secret.strip()
    yield from (word for word in secret.split() if len(word) >= _LONG_ENOUGH)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _match_character(character: str) -> str:
    """A pattern that matches a character in plain text and as JSON, URLs and HTML escape it."""
    percent = "".join(f"%{byte:02x}" for byte in _to_bytes(character))
    code = ord(character)
    escaped = {rf"\\u(?i:{code:04x})", rf"(?i:{percent})", rf"&#0*{code};?", rf"(?i:&#x0*{code:x};?)"}
    slashed = "\\/" if character == "/" else character
    written = {character, json.dumps(character)[1:-1], _escape_html(character), slashed}
    return f"(?:{'|'.join(sorted({*map(re.escape, written), *escaped}, key=len, reverse=True))})"


def _encode(secret: str) -> Iterator[str]:
    """The secret in plain text and in the encodings of servers, libraries and logs."""
    yield secret
    yield from _encode_base64(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield repr(secret)[1:-1]
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    yield _escape_html(secret)
    yield _to_bytes(secret).hex()
    yield _to_bytes(secret).hex().upper()
    if len(secret) >= _LONG_ENOUGH:
        yield secret.upper()
        yield secret.lower()


def _escape_html(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    from html import escape  # its tables of entities take longer to load than this module

    return escape(text)


def _encode_base64(secret: str) -> Iterator[str]:
    """What the base64 of every text with the secret contains, in both alphabets.

    Base64 turns three bytes into four characters, so the secret can begin at three offsets. The characters at both ends
    also depend on the neighbouring bytes and are left out. The base64 of the secret by itself comes first.
    """
    content = _to_bytes(secret)
    for before in range(3):
        encoded = b64encode(bytes(before) + content).decode("ascii")
        begin = (0, 2, 3)[before]
        rest = (before + len(content)) % 3
        sure = encoded[begin : len(encoded) - (0, 3, 2)[rest]]
        for form in (encoded, encoded.rstrip("=")) if before == 0 else ():
            yield form
            yield form.replace("+", "-").replace("/", "_")
        if len(sure) >= _LONG_ENOUGH:
            yield sure
            yield sure.replace("+", "-").replace("/", "_")


def _count_equal(text: str, place: int, secret: str) -> int:
    """How many characters the text, from a place on, shares with the beginning of a secret."""
    most = min(len(secret), len(text) - place)
    return next((n for n in range(most) if text[place + n] != secret[n]), most)


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
    takes_secret = re.fullmatch(rf"{_SENSITIVE}|{_HEADER}", name, re.IGNORECASE) is not None
    return takes_secret and _looks_random(re.sub(_SCHEME, "", text.strip(), count=1))


def identify_headers(headers: Mapping[str, Secret]) -> dict[str, str]:
    """What keys of stored replies hold of headers, because gateways route by them, by the name in lower case.

    A header with a secret counts as it is written (`Bearer ${secret:KEY}`), so that a new key pays for nothing twice.
    Of any other header, whose text may be a credential all the same, the sha256 counts.
    """
    return {
        name.lower(): hashlib.sha256(value.reveal().encode()).hexdigest() if str(value) == MASK else str(value)
        for name, value in sorted(headers.items())
    }


def _looks_random(word: str) -> bool:
    if len(word) < _SHORTEST or re.search(r"\s", word):
        return False
    shares = [count / len(word) for count in Counter(word).values()]
    return -sum(share * math.log2(share) for share in shares) >= _LEAST_BITS


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
