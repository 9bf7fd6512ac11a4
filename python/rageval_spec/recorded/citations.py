"""Finds the citations in an answer's text, in every usual form.

Numbers: `[1]`, `[1, 3]`, `[1-3]`, `[1][2]`, `[Doc 1]`, `【1†source】`, `[^1]`, `<sup>1</sup>`, `¹`. Names: `[doc-id]`,
`[text](url)`, `(Source: doc-id)`, `【4:0†file.pdf】`. A quote of a source: `[ 2 words of the source ]`. What
came beside the text is in `cited_blocks`.

Numbers count the contexts from 1, or from 0 if the answer cites number 0 or its record says `citations_from: 0`. They
are ids if all of them are ids of contexts. Where the answer lists its sources, a number means the source listed for it.

A number or id that names no context is a citation only where the form leaves no doubt. Code, years, intervals, lists
and indices are none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.data.evidence.citations import (
    DEFINITION,
    SOURCE_LIST,
    Citation,
    even_out,
    hide,
    hide_sources,
)
from rageval_spec.libraries import compile_later

_CODE = compile_later(r"```.*?(?:```|\Z)|`[^`\n]+`|\$\$.+?\$\$|\$[^$\n]{0,80}[\\=^_][^$\n]{0,80}\$", re.DOTALL)
_RANGE = r"\d+(?:\s*[-–—]\s*\d+)?"
_BETWEEN = r"(?:\s*(?:[,;&]|\b(?:and|or|und|oder)\b)\s*|\s+)"
_NUMBERS = rf"{_RANGE}(?:{_BETWEEN}{_RANGE})*"
_WORDS = r"(?:docs?|documents?|sources?|passages?|contexts?|chunks?|refs?|references?|citations?)"
_LENTICULAR = compile_later(r"【([^【】\n]{1,200})】")
_LINK = compile_later(
    r"(?<!!)(\(?)\[((?:[^\[\]\n]|\[[^\[\]\n]*\]){1,300})\]"
    r"\(<?([^()\s<>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"\n]*\")?\)(\)?)"
)
_FOOTNOTE = compile_later(r"\[\^([\w.-]+)\]")
_NAMED = compile_later(rf"(?i)\[\s*({_WORDS}[.:#\s]*{_RANGE}(?:{_BETWEEN}(?:{_WORDS}[.:#\s]*)?{_RANGE})*)\s*\]")
_SOURCE = compile_later(rf"(?i)[(\[]\s*{_WORDS}\s*[:：]\s*([^()\[\]\n]{{1,200}}|[^()\n]{{1,200}}(?=\)))\s*[)\]]")
_QUOTE = compile_later(r"\[ (\d{1,2}) (?=\S)([^\[\]]*\S) \]")
_GROUP = compile_later(rf"(?i)\[\s*(?:(?:see|cf\.?)\s+)?({_NUMBERS})\s*\]")
_LISTED = compile_later(
    r"(?m)(?:^[ \t]*(?:[-*•>][ \t]*)?\[?|(?<=\s)\[)(\w+)[\].):]+[ \t]*(.+?)(?=[,;]?[ \t]+\[\w+\]|[ \t]*$)"
)
_BRACKET = compile_later(r"\[([^\[\]\n]{1,200})\]")
_RAISED_TAG = compile_later(rf"<sup>\s*(\[?{_NUMBERS}\]?)\s*</sup>")
_RAISED = compile_later(r"[⁰¹²³⁴-⁹]+(?:[˒,\s]?[⁰¹²³⁴-⁹]+)*")
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")

_MOST_DIGITS = 3
"""Longer numbers are years and quantities, unless they are ids."""
_LONGEST_RANGE = 50
_OPERATORS = compile_later(r"[=+*^∈<>≤≥|\\]\s*$")
_FOLLOWED = compile_later(r"\w|[ \t]?[=+*/^∈<>≤≥]")
_BEFORE_INTERVAL = compile_later(
    r"(?i)(?:\b(?:intervals?|ranges?|domain|segment|between|bounds?|(?:values?|lies?|scale)\s+(?:in|from|of|on))"
    r"(?:\s+(?:of|from|is|in))?\s*:?|∈)\s*$"
)
_BEFORE_UNIT_INTERVAL = compile_later(r"(?i)\b(?:in|from|on|over|within|to|of)\s*$")
_BEFORE_LIST = compile_later(
    r"(?i)\b(?:lists?|arrays?|vectors?|tuples?|shapes?|dimensions?|matrix)(?:\s+(?:is|of|are))?\s*:?\s*$"
)
_WORD = compile_later(r"(?:\b(?:[^\W\d_]{3,}|[A-Z]{2})|(?<![\w.])\d+)$")
"""A word that a marker can follow without a space. What follows a shorter one is an index: `a[1]`."""


class _Found(NamedTuple):
    """A marker: its characters, the numbers or names that it holds, and what it says they are.

    `sure` means that the form is never anything but a citation. `span` is the text that it marks, if it encloses one.
    """

    start: int
    end: int
    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    sure: bool = False
    label: str | None = None
    span: tuple[int, int] | None = None


class Sources:
    """The contexts of an answer, by the ways in which it can name them."""

    def __init__(self, ids: Sequence[str] | None, contexts: Sequence[str] | None, first: int | None = None) -> None:
        """Take the contexts' ids and texts, and the number of the first one if it is known."""
        self.ids, self.texts, self.first = tuple(ids or ()), tuple(contexts or ()), first
        self.count = None if ids is None and contexts is None else max(len(self.ids), len(self.texts))
        self._places = {_plain_id(name): place for place, name in reversed([*enumerate(self.ids)])}
        self._shapes = {shape for name in self.ids if (shape := _shape(name))}
        self._endings = {ending for name in self.ids if (ending := _ending(name))}
        self.counts_ids = False
        self.listed: dict[str, int | None] = {}

    def find(self, name: str) -> int | None:
        """The context with this id or URL."""
        return self._places.get(_plain_id(name))

    def find_number(self, number: int) -> int | None:
        """The context that a number names."""
        if str(number) in self.listed:
            return self.listed[str(number)]
        if self.counts_ids:
            return self.find(str(number))
        place = number - (self.first or 0)
        return place if self.count is not None and 0 <= place < self.count else None

    def find_within(self, text: str) -> int | None:
        """The context whose id stands in a text, such as a footnote; the longest id counts."""
        words = set(map(_plain_id, re.split(r"[\s,;()<>\[\]\"]+", text)))
        held = [(len(name), -place) for place, name in enumerate(self.ids) if _plain_id(name) in words]
        return -max(held)[1] if held else None

    def resembles(self, name: str) -> bool:
        """Whether a name is written as the ids are: the same but for its digits, or with the same file ending."""
        return _shape(name) in self._shapes or (" " not in name and _ending(name) in self._endings)


def _plain_id(name: str) -> str:
    return re.sub(r"^https?://(?:www\.)?|/$", "", name.strip())


def _shape(name: str) -> str | None:
    return re.sub(r"\d+", "0", name) if re.search(r"\d", name) and re.search(r"\D", name) else None


def _ending(name: str) -> str | None:
    found = re.search(r"\.[a-z][a-z0-9]{1,4}$", name.lower())
    return None if found is None else found[0]


def find_citations(
    answer: str,
    contexts: Sequence[str] | None,
    ids: Sequence[str] | None,
    blocks: Sequence[Citation] = (),
    first: int | None = None,
    listed: Sequence[str] = (),
) -> tuple[Citation, ...]:
    """The citations of an answer, in order.

    Args:
        answer: the answer's text.
        contexts: the texts of its contexts; None if it is not known what they are.
        ids: their ids, in the same order.
        blocks: what was cited beside the text; markers at their places are not read again.
        first: the number of the first context, 0 or 1; None if nobody says.
        listed: documents named beside the text, in the order of its numbers. Without markers, the whole answer cites
            them.
    """
    sources = Sources(ids, contexts, first)
    answer = even_out(answer)
    text = hide(hide_sources(answer), [one.span() for one in _CODE.finditer(answer)])
    text = hide(text, [one.marker for one in blocks if one.marker is not None])
    found = sorted(_find_markers(text, sources), key=lambda one: one.start)
    numbers = {number for one in found for number in one.numbers if one.label is None}
    sources.counts_ids = bool(numbers) and all(sources.find(str(number)) is not None for number in numbers)
    if sources.first is None:
        sources.first = 0 if 0 in numbers else 1
    sources.listed = _read_sources(answer, sources, listed)
    kept = [one for one in found if _is_citation(one, sources)]
    plain = hide(hide_sources(answer), [(one.start, one.end) for one in kept] + [m for b in blocks if (m := b.marker)])
    sentences = kernels.split_sentences(plain)
    read = [cited for one in kept for cited in _cite(one, sources, find_statement(plain, sentences, one.start))]
    if not (read or blocks):
        return tuple(Citation(0, len(answer), name, None, sources.find(name)) for name in dict.fromkeys(listed))
    return tuple(sorted((*blocks, *read), key=lambda one: (one.marker or (one.end, one.end), one.start)))


def find_statement(plain: str, sentences: Sequence[tuple[int, int]], place: int) -> tuple[int, int]:
    """The sentence that a marker stands in or after; that after it, if the marker begins a line."""
    line = plain.rfind("\n", 0, place) + 1
    at = bisect_left(sentences, (place, place))
    after = sentences[at] if at < len(sentences) else None
    if after and not plain[line:place].strip(" \t-*>#") and "\n" not in plain[place : after[0]]:
        return after
    return sentences[at - 1] if at else (after or (place, place))


def _find_markers(text: str, sources: Sources) -> Iterator[_Found]:
    """All that may be markers, each character in one at most."""
    for form, read in _FORMS:
        read_all = [(match.span(), read(match, sources)) for match in form.finditer(text)]
        taken = [one for _, one in read_all if one is not None]
        yield from taken
        others = [span for span, _ in read_all] if form is _LINK else []
        text = hide(text, [*((one.start, one.end) for one in taken), *others])


def _list_numbers(written: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in re.findall(_RANGE, written):
        low, *high = (int(one) for one in re.split(r"\s*[-–—]\s*", part))
        is_range = high and low < high[0] <= low + _LONGEST_RANGE
        numbers += range(low, high[0] + 1) if is_range else [low, *high]
    return tuple(numbers)


def _read_said(match: re.Match[str], sources: Sources, said: str, name: str, others: Sequence[str]) -> _Found:
    """A citation by a name, if a context has it; by the numbers that are said; or by other names."""
    if name and sources.find(name) is not None:
        return _Found(*match.span(), names=(name,), sure=True)
    if re.fullmatch(_NUMBERS, said):
        return _Found(*match.span(), _list_numbers(said), sure=True)
    return _Found(*match.span(), names=tuple(others), sure=True)


def _read_lenticular(match: re.Match[str], sources: Sources) -> _Found:
    number, _, name = match[1].partition("†")
    return _read_said(match, sources, number.strip(), re.sub(r"†.*", "", name).strip(), [match[1].strip()])


def _read_link(match: re.Match[str], sources: Sources) -> _Found | None:
    """A link to a context, or one whose text is a number: other links are just links."""
    known = next((one for one in (match[3], match[3].partition("#")[0]) if sources.find(one) is not None), None)
    is_number = re.fullmatch(rf"\[?\^?{_NUMBERS}\]?", match[2].strip()) is not None
    if known is None and not is_number:
        return None
    start, end = match.start(2) - 1 if is_number else match.end(2), match.end() - len(match[4])
    if match[1] and match[4]:
        start, end = match.span()
    return _Found(start, end, names=(known or match[3],), sure=True)


def _read_footnote(match: re.Match[str], _: Sources) -> _Found:
    numbers = (int(match[1]),) if match[1].isdecimal() else ()
    return _Found(*match.span(), numbers, () if numbers else (match[1],), sure=True, label=f"^{match[1]}")


def _read_named(match: re.Match[str], sources: Sources) -> _Found:
    return _read_said(match, sources, " ".join(re.findall(_RANGE, match[1])), match[0][1:-1].strip(), ())


def _read_source(match: re.Match[str], sources: Sources) -> _Found:
    said = match[1].strip().strip("[]").strip()
    parts = [part.strip().strip("[]") for part in re.split(r"[,;]", said) if part.strip()]
    is_list = all(sources.find(part) is not None or " " not in part for part in parts)
    return _read_said(match, sources, said, "", parts if is_list else [said])


def _read_quote(match: re.Match[str], sources: Sources) -> _Found | None:
    number = int(match[1])
    if sources.count is not None and not 1 <= number <= sources.count:
        return None
    return _Found(match.start(), match.start(2), (number,), sure=True, label="quote", span=match.span(2))


def _read_group(match: re.Match[str], sources: Sources) -> _Found | None:
    numbers, text = _list_numbers(match[1]), match.string
    start, end = match.span()
    before, after = text[:start][-80:], text[end : end + 2]
    are_ids = all(sources.find(str(one)) is not None for one in numbers)
    if not are_ids and any(len(str(one)) > _MOST_DIGITS for one in numbers):
        return None
    if _OPERATORS.search(before) or _FOLLOWED.match(after):
        return None
    is_picture, is_word = before.endswith("!") and after.startswith("("), re.search(r"\w$", before) is not None
    is_place = re.search(r"\b\w{1,2}\[[^\]]*\]$", before) or (is_word and not _WORD.search(before))  # a[i][0], a[1]
    if is_picture or is_place:
        return None
    if len(numbers) > 1 and (_BEFORE_LIST.search(before) or _is_interval(match[1], numbers, before)):
        return None
    return _Found(start, end, numbers, label="index" if is_word and numbers == (0,) else None)


def _is_interval(written: str, numbers: Sequence[int], before: str) -> bool:
    if re.fullmatch(r"\d+\s*[,;]\s*\d+", written.strip()) is None or numbers[0] >= numbers[1]:
        return False
    unit = numbers[0] == 0 and _BEFORE_UNIT_INTERVAL.search(before)
    return bool(unit or _BEFORE_INTERVAL.search(before))


def _read_bracket(match: re.Match[str], sources: Sources) -> _Found | None:
    whole = match[1].strip()
    parts = [whole] if sources.find(whole) is not None else [part.strip() for part in re.split(r"[,;]", match[1])]
    are_ids = all(sources.find(part) is not None or sources.resembles(part) for part in parts)
    return _Found(*match.span(), names=tuple(parts), sure=True) if are_ids else None


def _read_raised(match: re.Match[str], _: Sources) -> _Found | None:
    said = match[0] if match.re.groups == 0 else match[1]
    before = match.string[: match.start()][-20:]
    is_sure, is_tag = said.startswith("["), match.re.groups > 0
    words = r"(?:[.,;:!?\"”»]|\b[^\W\d_]{3,} *)$" if is_tag else r"(?:[.,;:!?\"”»]|\b[^\W\d_]{4,})$"
    if not is_sure and re.search(words, before) is None:
        return None  # m², 10³
    digits = re.sub(r"[˒\s]", ",", said.translate(_RAISED_DIGITS))
    return _Found(*match.span(), _list_numbers(digits), sure=is_sure, label="raised")


_FORMS = (
    (_LENTICULAR, _read_lenticular),
    (_LINK, _read_link),
    (_FOOTNOTE, _read_footnote),
    (_NAMED, _read_named),
    (_SOURCE, _read_source),
    (_QUOTE, _read_quote),
    (_RAISED_TAG, _read_raised),
    (_GROUP, _read_group),
    (_BRACKET, _read_bracket),
    (_RAISED, _read_raised),
)  # fmt: skip


def _read_sources(answer: str, sources: Sources, listed: Sequence[str]) -> dict[str, int | None]:
    """The contexts that a list of sources, in the answer or beside it, gives its numbers and footnotes.

    None is for a source that is none of the contexts, if the list names others by their ids. Titles alone say nothing.
    """
    lines = [(str(number), name) for number, name in enumerate(listed, sources.first or 0)]
    lines += [(one[1], one[2]) for one in DEFINITION.finditer(answer)]
    for block in SOURCE_LIST.finditer(answer):
        lines += _LISTED.findall(block["lines"])
    named = {label: sources.find_within(said) for label, said in lines}
    alike = {label for label, said in lines if any(map(sources.resembles, said.split()))}
    known = any(place is not None for place in named.values())
    return {label: place for label, place in named.items() if known or label in alike}


def _is_citation(one: _Found, sources: Sources) -> bool:
    """Whether what may be a marker is one, now that it is known how the answer counts."""
    if one.sure:
        return True
    known = [sources.find_number(number) is not None for number in one.numbers]
    if one.label == "index":  # rows[0]
        return sources.first == 0 and all(known)
    if one.label == "raised":
        return all(known) and 0 not in one.numbers
    if sources.count is None:
        return all(number < 100 for number in one.numbers)
    return any(known) or len(known) == 1


def _cite(one: _Found, sources: Sources, statement: tuple[int, int]) -> Iterator[Citation]:
    start, end = one.span or statement
    named = [(str(number), sources.find_number(number)) for number in one.numbers]
    if one.label == "quote":
        named = [(str(number), None if sources.count is None else number - 1) for number in one.numbers]
    for name, place in (*named, *((name, sources.find(name)) for name in one.names)):
        yield Citation(start, end, name, (one.start, one.end), sources.listed.get(one.label or "", place))
