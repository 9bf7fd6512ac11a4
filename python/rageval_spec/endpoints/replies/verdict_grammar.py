"""What counts as a verdict in a reply without JSON: a word, an option or a number, and nothing else.

    verdict = the whole reply, or its whole last line
    line    = [label] value                               Score: 4    The answer is B
    label   = ["the" | "my" | "final" | ...] noun ("is" | ":" | "=")
    value   = option [the option's own meaning]           B    B)    (B) Partially relevant
            | the whole meaning of one option             Partially relevant
            | number [("/" | "out of") the highest one]   4    4/5

Marks of emphasis, quotation marks, brackets and a full stop around a value do not count. Everything else does: what
explains, limits or denies a verdict in the same line makes the reply unreadable, in any language, without a list of the
words that could. Nobody has to understand a reply to read it, so a text that it quotes cannot decide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from rageval_spec.libraries import compile_later

T = TypeVar("T")
Read = Callable[[str], "T | None"]

WORD_NOUNS = ("answer", "verdict")
"""What a reply can call a word: `Answer: yes`."""
OPTION_NOUNS = ("answer", "choice", "option", "letter", "verdict")
"""What a reply can call an option."""
NUMBER_NOUNS = ("grade", "score", "rating")
"""What a reply can call a number; not `answer`, because `The answer is 4` can be about the answer that is judged."""
_BOOLEANS: Mapping[str, bool] = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_OPENING = r"[\s*_#\"'`“”‘’„«»(\[]*+"
_CLOSING = r"[\s*_\"'`“”‘’«»)\].!。]*+"
"""Possessive, so that no hostile reply takes more than linear time."""
_ITEM = r"(?:[-•>][^\S\n]+(?=[\W_]*[^\W\d]))?"
"""The mark of a list or of a quotation before a word; before a number it could be a minus."""
_BETWEEN = compile_later(r"[\s)\]*_\"'`“”‘’«».:,;：–—-]+")
"""Between an option and its meaning."""
_EMPHASIS = compile_later(r"(?<!\w)\*+|\*+(?!\w)")
_MOST_MARKS = 20
"""Characters that can stand around a meaning."""
_LINE_BREAK = compile_later(r"\r?\n")
_OTHER_FORM = compile_later(r"[{}]|```|~~~|</?(?:think|thinking|thoughts?|reasoning)>|\[/?THINK\]")
"""JSON, code or thoughts: in a reply with these, no line is a verdict."""
_QUOTED = compile_later(r"[\"`“”„«»>]|^\W*['‘’]")
_NUMBER = compile_later(
    rf"{_OPENING}(?P<said>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|{'|'.join(_NUMBER_WORDS)})"
    rf"(?:\s*(?:/|out\s+of)\s*(?P<highest>\d+(?:\.\d+)?))?{_CLOSING}",
    re.IGNORECASE,
)


def read_verdict(text: str, read_value: Read[T], nouns: Sequence[str]) -> T | None:
    """The value that a reply states by the grammar of this module; None if it states none.

    The last line of several counts only if no other line is a verdict that differs, if it is not set in quotation
    marks, and if the line before does not introduce it with a colon, as one introduces what somebody else says.
    `nouns` are what the reply, which is without thoughts, can call the value.
    """
    label = _label(tuple(nouns))

    def read_line(line: str) -> T | None:
        plain = _EMPHASIS.sub("", line).strip()
        labelled = label.match(plain)
        return read_value(plain[labelled.end() :] if labelled else plain)

    lines = [stripped for line in _LINE_BREAK.split(text) if (stripped := line.strip())]
    if len(lines) < 2:
        return read_line(lines[0]) if lines else None
    *before, last = lines
    introduced = _EMPHASIS.sub("", before[-1]).strip()
    if _OTHER_FORM.search(text) or _QUOTED.search(last):
        return None
    if introduced.endswith((":", "：")) and not label.fullmatch(introduced):
        return None
    found = read_line(last)
    if found is None or any(read_line(line) not in (None, found) for line in before):
        return None
    return found


def read_option(text: str, options: Sequence[Any], meanings: Mapping[str, str] | None = None) -> Any:
    """The option that a value is, in any case and spacing, alone or with its own meaning; None if it is none.

    `meanings` are the meanings of the options. After an option, a part of its meaning is enough: `B) Mostly`. Without
    one, the meaning must be whole, and no other option may have the same.
    """
    if text in options:
        return text
    meant = meanings or {}
    found = [option for option in options if _is_option(text, str(option), options, meant.get(option, ""))]
    if not found and (said := _fold_meaning(text)):
        found = [option for option in options if said == _fold_meaning(meant.get(option, ""))]
    return found[0] if len(found) == 1 else None


def begins_with_option(text: str, options: Sequence[Any]) -> bool:
    """Whether a value names one of the options first, whatever it says after that."""
    return any(_option(str(option)).match(text) for option in options)


def read_number(text: str, highest: float | None = None) -> int | float | None:
    """The number that a value is; None if it is none. `highest` is what may stand after a slash: `4/5`."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    said, of = found["said"].lower(), found["highest"]
    if of is not None and (highest is None or float(of) != highest):
        return None
    if said in _NUMBER_WORDS:
        return _NUMBER_WORDS.index(said)
    try:
        return int(said) if said.lstrip("+-").isdecimal() else float(said)
    except ValueError:
        return None


def read_boolean(text: str) -> bool | None:
    return _BOOLEANS.get(read_option(text, [*_BOOLEANS]))


def fold_word(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word).casefold()


def _is_option(text: str, option: str, options: Sequence[Any], meaning: str) -> bool:
    found = _option(option).match(text)
    if found is None:
        return False
    rest = text[found.end() :]
    if re.fullmatch(_CLOSING, rest):
        return True
    gap = _BETWEEN.match(rest)
    if gap is None or len(rest) > 2 * len(meaning) + _MOST_MARKS:
        return False
    said, meant = _fold_meaning(rest[gap.end() :]), _fold_meaning(meaning)
    if not said or not meant.startswith(said) or re.match(r"\w", meant[len(said) :]):
        return False
    return not any(_option(str(other)).fullmatch(said) for other in options if str(other) != option)


def _fold_meaning(text: str) -> str:
    return " ".join(text.split()).strip("*_\"'`“”‘’«»()[].!。 ").casefold()


@lru_cache(maxsize=1024)
def _option(option: str) -> re.Pattern[str]:
    """An option at the beginning of a value: words with any spaces between them, or else its exact characters."""
    words = re.findall(r"[^\W_]+", option)
    if not words or re.fullmatch(r"\w(?:[\w\s-]*\w)?", option) is None:
        return re.compile(rf"\s*+{re.escape(option)}(?![^\W_])", re.IGNORECASE)
    spelled = r"[\s_-]*".join(map(re.escape, words))
    return re.compile(rf"{_OPENING}{_ITEM}{_OPENING}{spelled}(?![^\W_])", re.IGNORECASE)


@lru_cache(maxsize=64)
def _label(nouns: tuple[str, ...]) -> re.Pattern[str]:
    named = "|".join(re.escape(noun).replace("_", r"[\s_-]") for noun in nouns)
    adjectives = r"(?:(?:the|my|final|overall|correct|best)\s+)*"
    stated = rf"{adjectives}(?:{named})(?:\s*[:=：]|\s+is\b[:：]?)"
    plain = "|option\\s" if "option" in nouns else ""
    return re.compile(rf"[\s#(]*+(?:[-•]\s+)?(?:{stated}{plain})\s*", re.IGNORECASE)
