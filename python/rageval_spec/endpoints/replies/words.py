"""Which of several options a text names, and whether anything in it speaks against that."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.endpoints.replies.json_text import find_pieces
from rageval_spec.endpoints.replies.unreadable import UnreadableReplyError


def _list(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DOUBTS = _list(
    "maybe perhaps possibly probably unsure uncertain unclear depends depending mixed both either undecided ambiguous "
    "vielleicht unklar unsicher peut quizás talvez forse misschien"
)
"""Words of one who does not know."""
_PARTS = _list(
    "partial partially partly part parts half mostly mainly largely somewhat nearly almost hardly barely scarcely only "
    "incomplete incompletely teilweise teils nur partiellement partie parcialmente parte parzialmente deels "
    "gedeeltelijk"
)
"""Words of one who means less than the whole."""
_DENIALS = _list(
    "not no never nope none nothing without cannot nor neither false incorrect wrong untrue unsupported contradict "
    "contradicts contradicted contradicting lack lacks lacking missing fails nein nicht kein keine non pas não niet "
    "nee"
)
"""Words that turn what they stand beside into its opposite."""
_TURNS = _list(
    "but however although though except unless nevertheless nonetheless yet aber jedoch mais cependant pero sino mas "
    "maar"
)
"""Words after which something else follows."""
_AFFIRMATIONS = frozenset(["yeah", "yep", "yup", "supported"])
"""Words that say yes where nothing in their sentence denies it."""
_DENYING = frozenset(["no", "false", "contradicted"])
"""Options in whose explanation a denial is nothing special."""

_MARKUP = r"[^\w?!~=≠¬]*"
_BEGINNING = re.compile(rf"{_MARKUP}(yes|no)(?:[^\w?]*$|[.,;:!)\n\"'*_`]|\s+[-–—(])", re.IGNORECASE)
_END = re.compile(rf"(?:^|\n|:){_MARKUP}(yes|no)[^\w?]*$", re.IGNORECASE)
_LONGEST_END = 200
"""Characters in which a word at the end is looked for: a bound on the time that hostile replies take."""
_DENIED = re.compile(r"(?:\bnot|\bnever|n['’]t|\bcannot)[^\w\n]*$", re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_NOT_SHORTENED = re.compile(r"n['’]t\b")
_SENTENCE = re.compile(r"[^.!?;\n]+")
_HEAD = re.compile(r"[.,:;()\n]|\s[-–—]\s")
_DOUBTED = re.compile(r"[?~=≠¬]|^\s*!")


def read_word(text: str) -> str:
    """`yes` or `no`: the word with which a reply begins, or ends after a colon or on a line of its own.

    A reply in JSON is read by its values. An explanation may stand beside the word, but nothing that speaks against
    it: the other word, "but", "partly", "perhaps", or a denial of what was affirmed.

    Raises:
        UnreadableReplyError: there is no such word, or the reply says something else as well.
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
    rival = _find_word_rival(word, f"{before}\n{after}")
    if rival is not None:
        raise UnreadableReplyError(f"it says {word}, and also {json.dumps(rival)}")
    return word


def _join_values(text: str) -> str:
    """The values of a reply in JSON, a line each, and the text around it; keys say nothing."""
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


def _find_word_rival(word: str, rest: str) -> str | None:
    said = split_words(rest)
    if word == "yes":
        return _first_of(said, _DENIALS | _PARTS | _TURNS | _DOUBTS)
    return _first_of(said, _DOUBTS | {"yes"}) or _find_affirmation(rest)


def _find_affirmation(text: str) -> str | None:
    """What affirms in a sentence that denies nothing and speaks of no part."""
    for sentence in _SENTENCE.findall(text):
        words = split_words(sentence)
        affirmed = _first_of(words, _AFFIRMATIONS)
        if affirmed and not _first_of(words, _DENIALS | _PARTS):
            return affirmed
    return None


def find_option(text: str, options: Sequence[Any], meanings: Mapping[str, str] | None = None) -> Any:
    """The option that a text is, in any spelling, with an explanation after it or none; None where it is none of them.

    `meanings` are what options stand for: an explanation may repeat its option's.

    Raises:
        UnreadableReplyError: it is one, and what follows names another or takes it back; the message is what follows.
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
    """What in an explanation of an option names another one, or takes it back; None where nothing does."""
    if not rest:
        return None
    words, meant = split_words(rest), split_words(meaning)
    if words[: len(meant)] == meant:
        words, rest = words[len(meant) :], rest.replace(meaning, " ", 1)
    elif meant[: len(words)] == words:
        return None
    for other in options:
        if other != option and _names(other, words, rest):
            return other
    return _first_of([word for word in words if word not in meant], _rivals_of(option))


def _names(option: str, words: Sequence[str], text: str) -> bool:
    """Whether a text names an option; a letter must be one by itself, and "a" and "I" are words as well."""
    if len(option) == 1:
        spelled = option if option in "AI" else f"{option.upper()}{option.lower()}"
        return re.search(rf"(?<![\w'’])[{re.escape(spelled)}](?![\w'’])", text) is not None
    wanted = split_words(option)
    return any([*words[at : at + len(wanted)]] == wanted for at in range(len(words)))


def _rivals_of(option: str) -> frozenset[str]:
    """The words that take an option back."""
    word = option.casefold()
    if word.startswith("not"):
        return frozenset()
    if word in _DENYING:
        return _DOUBTS | _PARTS
    if len(option) == 1:
        return _DOUBTS | _PARTS | _TURNS
    return _DOUBTS | _PARTS | _TURNS | _DENIALS


def split_words(text: str) -> list[str]:
    """The words of a text without case, whatever hides in them or shapes their letters; "isn't" has a "not"."""
    plain = unicodedata.normalize("NFKC", text)
    if not plain.isascii():
        plain = "".join(character for character in plain if unicodedata.category(character) != "Cf")
    return re.findall(r"[^\W_]+", _NOT_SHORTENED.sub(" not", plain.casefold()))


def fold_word(word: str) -> str:
    """A word without case, punctuation and white space."""
    return re.sub(r"[\W_]+", "", word).casefold()


def _first_of(words: Iterable[str], wanted: frozenset[str]) -> str | None:
    return next((word for word in words if word in wanted), None)
