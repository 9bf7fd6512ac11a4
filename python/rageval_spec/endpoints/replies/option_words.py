"""Finds which of several options a text names, and whether anything in the text contradicts it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.endpoints.replies.json_text import UnreadableReplyError, find_pieces


def _list(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DOUBTS = _list(
    "maybe perhaps possibly probably unsure uncertain unclear depends depending mixed both either undecided ambiguous "
    "vielleicht unklar unsicher peut quizás talvez forse misschien"
)
"""Words that express doubt."""
_PARTS = _list(
    "partial partially partly half mostly mainly largely somewhat nearly almost hardly barely scarcely only "
    "incomplete incompletely teilweise teils nur partiellement partie parcialmente parte parzialmente deels "
    "gedeeltelijk"
)
"""Words that limit a statement to a part."""
_QUALIFIED = re.compile(
    r"\b(?:in part\b(?! \d)|in parts\b|parts? of (?:it|this|that|the (?:answer|claim|statement|text))\b"
    r"|(?:sort|kind) of\b|in a (?:way|sense)\b|in some (?:ways?|respects)\b|more or less\b|with one exception\b"
    r"|to (?:some|a (?:certain|large|great|limited)) (?:extent|degree)\b"
    r"|with (?:a |the |some |minor |certain |a few )?(?:caveats?|exceptions?|reservations?|qualifications?)\b"
    r"|apart from\b|aside from\b|on second thoughts?\b|just kidding\b)"
)
"""Phrases that limit a statement, although their words do not: Saarland is a part of Germany."""
_QUALIFIED_AT_ONCE = re.compile(
    r"[^\w.!?;\n]*(?:i (?:think|guess|suppose|believe)|arguably|likely|unlikely|roughly|loosely|broadly"
    r"|approximately|ish|a (?:bit|little)|excluding|minus|doubtful(?:ly)?|questionabl[ey]|if)\b"
)
"""Words that limit a verdict directly after it. Elsewhere they can be about something else: a likely cause."""
_DENIALS = _list(
    "not no never nope none nothing without cannot nor neither false incorrect inaccurate wrong untrue unsupported "
    "contradict contradicts contradicted contradicting lack lacks lacking missing fails nein nicht kein keine non pas "
    "não niet nee"
)
"""Words that turn a statement into its opposite."""
_TURNS = _list(
    "but however although though except unless nevertheless nonetheless yet aber jedoch mais cependant pero sino mas "
    "maar"
)
"""Words that introduce a restriction."""
_AFFIRMED = re.compile(
    r"(?:^|\b(?:is|are|was|were|s) )\W*(?:\w+ly )?(?:true|correct|accurate|right)\W*$", re.IGNORECASE
)
"""A sentence that affirms, or the end of one."""
_AFFIRMATIONS = frozenset(["yeah", "yep", "yup", "supported"])
"""Words that mean yes, unless something in their sentence denies it."""
_DENYING = frozenset(["no", "false", "contradicted"])
"""Options whose explanation normally contains a denial."""

_MARKUP = r"[^\w?!~=≠¬]*"
_BEGINNING = re.compile(rf"{_MARKUP}(yes|no)(?:[^\w?]*$|[.,;:!)\n\"'*_`]|\s+[-–—(])", re.IGNORECASE)
_END = re.compile(rf"(?:^|\n|:){_MARKUP}(yes|no)[^\w?]*$", re.IGNORECASE)
_LONGEST_END = 200
"""Characters at the end in which to look for a final word, which bounds the time that a hostile reply can take."""
_DENIED = re.compile(r"(?:\bnot|\bnever|n['’]t|\bcannot)[^\w\n]*$", re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_NOT_SHORTENED = re.compile(r"n['’]t\b")
_SENTENCE = re.compile(r"[^.!?;\n]+")
_HEAD = re.compile(r"[.,:;()\n]|\s[-–—]\s")
_DOUBTED = re.compile(r"[?~=≠¬]|^\s*!")


def read_word(text: str) -> str:
    """`yes` or `no`: the word at the beginning of a reply, or at its end after a colon or on a separate line.

    Of a JSON reply only the values count. The reply may explain the word but not contradict it: with the other word,
    "but", "partly", "perhaps", or a denial of what it affirmed.

    Raises:
        UnreadableReplyError: there is no such word, or the reply also says something else.
    """
    if fenced := _FENCED.fullmatch(text.strip()):
        text = fenced.group(1).strip()
    if text.startswith(("{", "[")):
        text = _join_values(text)
    found = _BEGINNING.match(text) or _END.search(text, max(len(text) - _LONGEST_END, 0))
    if found is None:
        raise UnreadableReplyError("it is neither yes nor no")
    word = found.group(1).lower()
    before, after = text[: found.start(1)], text[found.end(1) :]
    if _DENIED.search(before[-_LONGEST_END:]):
        raise UnreadableReplyError(f"it says {word}, and not {word}")
    rival = _find_word_rival(word, before, after)
    if rival is not None:
        raise UnreadableReplyError(f"it says {word}, and also {json.dumps(rival)}")
    return word


def _join_values(text: str) -> str:
    """The values of a JSON reply, one per line, and the text around the JSON; keys are left out."""
    parts, position = [], 0
    for piece in find_pieces(text):
        if piece.fault is not None:
            raise UnreadableReplyError("it is neither yes nor no")
        parts += [text[position : piece.begin], *_list_leaves(piece.value)]
        position = piece.end
    return "\n".join(filter(None, map(str.strip, (*parts, text[position:]))))


def _list_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _list_leaves(inner)
    else:
        yield str(value)


def _find_word_rival(word: str, before: str, after: str) -> str | None:
    rest = f"{before}\n{after}"
    said = split_option_words(rest)
    if qualified := _QUALIFIED.search(" ".join(said)) or _QUALIFIED_AT_ONCE.match(after.casefold()):
        return re.sub(r"^\W+", "", qualified.group())
    if word == "yes":
        return _first_of(said, _DENIALS | _PARTS | _TURNS | _DOUBTS)
    return _first_of(said, _DOUBTS | {"yes"}) or _find_affirmation(rest)


def _find_affirmation(text: str) -> str | None:
    """An affirmative word in a sentence without denial and without limitation to a part; None if there is none."""
    for sentence in _SENTENCE.findall(text):
        words = split_option_words(sentence)
        if _first_of(words, _DENIALS | _PARTS):
            continue
        if affirmed := _first_of(words, _AFFIRMATIONS):
            return affirmed
        if _AFFIRMED.search(" ".join(words)):
            return words[-1]
    return None


def find_option(text: str, options: Sequence[Any], meanings: Mapping[str, str] | None = None) -> Any:
    """The option that a text names, in any spelling, with or without an explanation after it; None if it names none.

    `meanings` are the meanings of the options; an explanation may repeat the meaning of its own option.

    Raises:
        UnreadableReplyError: the explanation names another option or takes this one back; the message is that part.
    """
    folded = {fold_word(str(option)): option for option in options}
    head, *_ = _HEAD.split(text.strip().lstrip("("), maxsplit=1)
    for said in (text, head):
        option = folded.get(fold_word(said))
        if option is None:
            continue
        rest = text.strip().lstrip("(")[len(head) :] if said is head else ""
        rival = _find_option_rival(str(option), rest, [str(one) for one in options], (meanings or {}).get(option, ""))
        if rival is None and _DOUBTED.search(said):
            rival = said
        if rival is not None:
            raise UnreadableReplyError(rival)
        return option
    return None


def _find_option_rival(option: str, rest: str, options: Sequence[str], meaning: str) -> str | None:
    """The part of an explanation that names another option or takes the option back; None if there is none."""
    if not rest:
        return None
    words, meant = split_option_words(rest), split_option_words(meaning)
    if words[: len(meant)] == meant:
        words, rest = words[len(meant) :], rest.replace(meaning, " ", 1)
    elif meant[: len(words)] == words:
        return None
    for other in options:
        if other != option and _names(other, words, rest):
            return other
    qualified = _QUALIFIED.search(" ".join(words))
    if qualified and qualified.group() not in " ".join(meant):
        return qualified.group()
    return _first_of([word for word in words if word not in meant], _rivals_of(option))


def _names(option: str, words: Sequence[str], text: str) -> bool:
    """Whether a text names an option; a letter must stand by itself, and "a" and "I" can also be ordinary words."""
    if len(option) == 1:
        spelled = option if option in "AI" else f"{option.upper()}{option.lower()}"
        return re.search(rf"(?<![\w'’])[{re.escape(spelled)}](?![\w'’])", text) is not None
    wanted = split_option_words(option)
    return any([*words[at : at + len(wanted)]] == wanted for at in range(len(words)))


def _rivals_of(option: str) -> frozenset[str]:
    """The words that contradict an option."""
    word = option.casefold()
    if word.startswith("not"):
        return frozenset()
    if word in _DENYING:
        return _DOUBTS | _PARTS
    if len(option) == 1:
        return _DOUBTS | _PARTS | _TURNS
    return _DOUBTS | _PARTS | _TURNS | _DENIALS


def split_option_words(text: str) -> list[str]:
    """The words of a text without case, invisible characters and letter styles; "isn't" contains "not"."""
    plain = unicodedata.normalize("NFKC", text)
    if not plain.isascii():
        plain = "".join(character for character in plain if unicodedata.category(character) != "Cf")
    return re.findall(r"[^\W_]+", _NOT_SHORTENED.sub(" not", plain.casefold()))


def fold_word(word: str) -> str:
    """A word without case, punctuation and white space."""
    return re.sub(r"[\W_]+", "", word).casefold()


def _first_of(words: Iterable[str], wanted: frozenset[str]) -> str | None:
    return next((word for word in words if word in wanted), None)
