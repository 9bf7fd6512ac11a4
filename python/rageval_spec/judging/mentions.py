"""Finds the numbers and names of a text that none of its sources contain.

Numbers are compared as quantities, with their sign and unit (`quantities.py`). Names count as contained
also in another form: `WHO` and `World Health Organization`, `Юрием` and `Юрий`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.judging.language import find_language
from rageval_spec.judging.quantities import DATE, DIGIT, Quantity, Sources, find_quantities, spell_fractions
from rageval_spec.kernels import WordShare
from rageval_spec.libraries import compile_later

_CITATION = compile_later(r"\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")
"""`[1]`, `[2, 3]`: how an answer numbers its sources."""
_NUMBERED_SOURCE = compile_later(
    r"\b(?:context|document|doc|source|passage|chunk|snippet|excerpt)s? (?:#|no\. ?|nos\. ?)?\d{1,3}\b"
    r"(?:(?:,| and|, and| &) \d{1,3}\b(?![.,]\d))*(?![.,]\d|%)|\b(?:context|document|source|passage)s?(?= +\[\d)",
    re.IGNORECASE,
)
"""`Context 2`, `documents 1 and 3`, and the first word of `Document [1]`."""
_LIST_NUMBER = compile_later(r"^[\s*_#>-]*(?:(?:step|schritt) \d{1,3}\b|\d{1,3}[.)]\s+)", re.IGNORECASE)
_OPENING_MARKS = "\"'“”‘’„«‹*_#>-–—•:([¿¡ \t\n"
"""Characters that can come before the first word of a sentence."""
_NUMBER = compile_later(r"[$€£¥]?\d[\d.,]*%?(?: [a-z]+)?")
"""A number as `kernels.names` writes it: `1200.5`, `$3.5 million`, `15%`."""
_MOST_NAMED = 6
_BELOW = 0.01
"""How far below the cut of its judge a claim's score stays if something that it names is missing."""


class Mentions(NamedTuple):
    """The numbers and names of a text: how many were looked up, and those that no source contains, in order."""

    total: int
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share that the sources contain; 1 if nothing was looked up."""
        return 1 - len(self.missing) / self.total if self.total else 1.0

    def hold_back(self, score: float, least: float) -> float:
        """A claim's score, which stays below `least` if something that the claim names is missing from the sources.

        `least` is the score from which its judge takes a claim for supported. However alike the words are, another
        number makes another claim: "8,352,603 people in 2017" and "1,345,596 people in 2010".
        """
        return min(score, max(least - _BELOW, 0.0)) if self.missing else score

    def describe(self, sources: str) -> str | None:
        """`not in the contexts: 2019, Marie Curie`; None if nothing is missing. `sources` names the sources."""
        if not self.missing:
            return None
        rest = len(self.missing) - _MOST_NAMED
        return f"not in the {sources}: {', '.join(self.missing[:_MOST_NAMED])}{f' and {rest:,} more' * (rest > 0)}"


def find_mentions(pairs: Sequence[tuple[str, Sequence[str]]], *, threads: int | None = None) -> list[Mentions]:
    """Look the numbers and names of texts up; a pair is a text and the sources in which they are looked up.

    A name is found if each of its words is in a source. A number is found if a source has the same quantity, however
    it is written: `1,000` and `1000`, `5%` and `5 percent`, `14 days` and `two weeks`, but not `$20` and `€20`. A name
    is also found if the sources abbreviate it or spell it out: `WHO` and `World Health Organization`. Citations such as
    `[2]` and `Context 2` and the numbers of a list are not looked up. Nor is a single capitalised word at the beginning
    of a text: it may be any word. In German, which capitalises all nouns, one unseen word by itself is not a missing
    name.
    """
    mentioned = [_list_mentions(text) for text, _ in pairs]
    wanted = [
        (name, found_in) for named, (_, found_in) in zip(mentioned, pairs, strict=True) for _, name in named.names
    ]
    found = iter(_look_up(wanted, threads))
    unseen = [[name for _, name in named.names if not next(found)] for named in mentioned]
    missing = _drop_other_forms(unseen, pairs)
    lacking = _find_missing_quantities(mentioned, pairs)
    found_missing = []
    for named, absent, (total, quantities) in zip(mentioned, missing, lacking, strict=True):
        places = [(at, name) for at, name in named.names if name in absent]
        texts = [text for _, text in sorted([*places, *((one.start, one.text) for one in quantities)])]
        found_missing.append(Mentions(len(named.names) + total, tuple(dict.fromkeys(texts))))
    return found_missing


def _find_missing_quantities(
    mentioned: Sequence[_Named], pairs: Sequence[tuple[str, Sequence[str]]]
) -> Iterator[tuple[int, list[Quantity]]]:
    """How many quantities of each text are looked up, and those that its sources do not contain."""
    last: Sequence[str] | None = None
    known = Sources(())
    for named, (text, texts) in zip(mentioned, pairs, strict=True):
        if named.quantities and texts is not last:
            known, last = Sources(texts), texts
        wanted = [one for _, one in named.quantities if not one.may_be_word or known.has_head(one.head)]
        yield len(wanted), [one for one in wanted if not _is_in(one, known, text, texts)]


def _is_in(one: Quantity, known: Sources, text: str, texts: Sequence[str]) -> bool:
    if known.contain(one, text):
        return True
    dates = {date for source in texts for date in (*kernels.names(source), *spell_dates(source))}
    return any(date in dates for date in spell_dates(one.text))


def merge_mentions(parts: Sequence[Mentions]) -> Mentions:
    """Those of several texts together; what is missing from several is named once."""
    missing = dict.fromkeys(name for part in parts for name in part.missing)
    return Mentions(sum(part.total for part in parts), tuple(missing))


class _Named(NamedTuple):
    """What of a text is looked up: its names and dates, and its quantities, each with its place."""

    names: list[tuple[int, str]]
    quantities: list[tuple[int, Quantity]]


def _list_mentions(text: str) -> _Named:
    said = _drop_citations(text)
    found = find_quantities(said)
    plain = said
    for one in found:
        if one.head and one.is_word and not one.may_be_word:
            plain = f"{plain[: one.start]}{' ' * (one.end - one.start)}{plain[one.end :]}"
    names = [
        (max(said.find(name.split()[0]), 0), name)
        for name in kernels.names(plain)
        if not _NUMBER.fullmatch(name) and not _may_be_any_word(name, said)
    ]
    if not found:
        return _Named(names, [])
    spans = [(match.start(), match.end()) for match in DATE.finditer(said)]
    spans += [(at, at + len(name)) for at, name in names if DIGIT.search(name) and said.startswith(name, at)]
    own = [one for one in found if not any(one.start < end and one.end > start for start, end in spans)]
    own = [one for one in own if not one.may_be_word or (one.head and one.text == "I")]
    names = [(at, name) for at, name in names if not any(one.start <= at < one.end for one in own)]
    return _Named(names, [(one.start, one) for one in {one.text: one for one in reversed(own)}.values()][::-1])


def _drop_citations(text: str) -> str:
    """A text without the numbers of sources and of lists, from its first word on."""
    said = spell_fractions(text)
    if DIGIT.search(said):
        said = _LIST_NUMBER.sub("", _CITATION.sub(" ", _NUMBERED_SOURCE.sub(" ", said)))
    return said.lstrip(_OPENING_MARKS)


def _may_be_any_word(name: str, text: str) -> bool:
    """Whether a name may be capitalised only because it begins the text; `US` and `McDonald` are names anywhere."""
    return name[0].isalpha() and name[1:].islower() and " " not in name and text.startswith(name)


def _look_up(wanted: Sequence[tuple[str, Sequence[str]]], threads: int | None = None) -> list[bool]:
    """For each name and its sources, whether they contain all its words as they are written."""
    words = [(word, found_in) for name, found_in in wanted for word in name.split()]
    support = kernels.word_support([word for word, _ in words], [found_in for _, found_in in words], threads=threads)
    looked_up = zip(words, support, strict=True)
    found = iter([_contain(sources, word, shares[-1]) for (word, sources), shares in looked_up])
    parts = [[next(found) for _ in name.split()] for name, _ in wanted]
    return [all(one) for one in parts]


def _contain(sources: Sequence[str], word: str, share: WordShare) -> bool:
    """Whether the sources contain a word. `May` and `US` have no share, because `may` and `us` are function words."""
    if share.total or not word[0].isupper():
        return share.found == share.total
    return any(word in source.replace(".", "") for source in sources)


def _drop_other_forms(unseen: Sequence[list[str]], pairs: Sequence[tuple[str, Sequence[str]]]) -> Iterator[list[str]]:
    """The names and dates of each text without those that its sources write in another form."""
    last: Sequence[str] | None = None
    dates: list[str] = []
    for names, (text, sources) in zip(unseen, pairs, strict=True):
        numbered = [name for name in names if DIGIT.search(name)]
        if numbered and sources is not last:
            dates = [*map(spell_fractions, sources)]
            dates += [date for source in sources for date in (*kernels.names(source), *spell_dates(source))]
            last = sources
        others = {name for name in numbered if all(_look_up([(name, [*sources, *dates])], 1))}
        left = [name for name in names if name not in others]
        yield left if len(left) + len(others) == len(numbered) else _drop_other_names(left, text, sources)


def _drop_other_names(names: list[str], text: str, sources: Sequence[str]) -> list[str]:
    """The numbers, and the names that sources write in no other form."""
    said = _drop_citations(text)
    language = find_language_of(said, sources)

    def is_other(name: str) -> bool:
        words = name.split()
        are_there = _look_up([(word, sources) for word in words], 1)
        absent = [word for word, is_there in zip(words, are_there, strict=True) if not is_there]
        return may_be_noun(name, absent, said, language) or is_name_in(name, sources, language)

    return [name for name in names if DIGIT.search(name) or not is_other(name)]


_WORD = compile_later(r"[^\W\d_]+")
_TITLE = compile_later(r"(?:Mr|Mrs|Ms|Dr|Prof|Sir|Herr|Frau|Mme|M|Sr|Sra)\.? ")
_CURRENCIES = {"EUR": ("€", "euro"), "USD": ("$", "dollar"), "GBP": ("£", "pound"), "JPY": ("¥", "yen")}
_LETTERS_OF_LANGUAGES_WITH_CASES = compile_later("[\u0370-\u052f]")
"""Greek and Cyrillic."""
_LANGUAGES_WITH_CASES = frozenset({"cs", "fi", "hr", "hu", "pl", "sk", "sl", "tr"})
_ENDING = 3
"""The longest ending that a case is taken to have."""
_FEWEST_STEM_LETTERS = 3
_FEWEST_INITIALS = 2
_READ = 400
"""Characters of an answer and of its sources that show the language."""


def find_language_of(text: str, sources: Sequence[str]) -> str | None:
    """The language of a text; if it is too short to tell, that of the text with the beginning of its sources."""
    return find_language(text[:_READ]) or find_language(f"{text[:_READ]} {' '.join(sources)[:_READ]}")


def may_be_noun(name: str, unseen: Sequence[str], text: str, language: str | None) -> bool:
    """Whether a name is capitalised only because German capitalises all nouns; `unseen` are its words to look up.

    Two neighbouring words that are both unseen are a name, if the first does not begin the text. So is a word with
    several capital letters.
    """
    if language != "de" or any(sum(letter.isupper() for letter in word) > 1 for word in unseen):
        return False
    first = name.split()[0]
    begins = text.startswith(first) and first in unseen
    return len(unseen) - begins < 2


def is_name_in(name: str, sources: Sequence[str], language: str | None) -> bool:
    """Whether sources contain a name without its title, by its initials or spelled out, or in another case."""
    short = _TITLE.sub("", name, count=1)
    if short != name and all(_has_word(word, sources) for word in short.split()):
        return True
    if name.isupper():
        forms = _CURRENCIES.get(name, ())
        return any(form in one.lower() for form in forms for one in sources) or _are_initials_in(name, sources)
    words = _WORD.findall(name)
    if len(words) >= _FEWEST_INITIALS and _has_word("".join(word[0] for word in words if word[0].isupper()), sources):
        return True
    has_cases = language in _LANGUAGES_WITH_CASES
    return bool(words) and all(_has_stem(word, sources, has_cases=has_cases) for word in words)


def _has_word(word: str, sources: Sequence[str]) -> bool:
    """Whether a word stands in the sources as it is written, full stops in `U.S.` aside."""
    if len(word) < _FEWEST_INITIALS:
        return False
    found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return any(found.search(source) or found.search(source.replace(".", "")) for source in sources)


def _are_initials_in(name: str, sources: Sequence[str]) -> bool:
    """Whether neighbouring capitalised words begin with these letters; small words between them do not count."""
    letters = [re.escape(letter) for letter in name if letter.isalpha()]
    if len(letters) < _FEWEST_INITIALS:
        return False
    between = r"[^\W\d_]*,?[\s-]+(?:[a-z]{1,3}\s+){0,2}"
    spelled = re.compile(rf"(?<!\w){between.join(letters)}[^\W\d_]+")
    return any(spelled.search(source) for source in sources)


def _has_stem(word: str, sources: Sequence[str], *, has_cases: bool) -> bool:
    """Whether a word of a language with cases stands in the sources with any ending."""
    if not (has_cases or _LETTERS_OF_LANGUAGES_WITH_CASES.match(word)):
        return False
    stem = word[: max(_FEWEST_STEM_LETTERS, len(word) - _ENDING)]
    found = re.compile(rf"(?<!\w){re.escape(stem)}\w{{0,{len(word) - len(stem) + _ENDING}}}(?!\w)")
    return any(found.search(source) for source in sources)


_NUMERIC_DATE = compile_later(
    r"(?<![\d./-])(?:(\d{4})([./-])(\d\d?)\2(\d\d?)|(\d\d?)([./-])(\d\d?)\6(\d{4}))(?![\d/-]|\.\d)"
)
"""`1999-05-12`, or `12.5.1999`."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def spell_dates(text: str) -> Iterator[str]:
    """Dates in numbers as day, month and year. `12/5/1999` is `12 May 1999` and `5 December 1999`: both are usual."""
    for match in _NUMERIC_DATE.finditer(text):
        if match[1]:
            readings = [(match[4], match[3], match[1])]
        else:
            readings = [(match[5], match[7], match[8]), (match[7], match[5], match[8])]
        for day, month, year in readings:
            if 1 <= int(month) <= len(_MONTHS) and 1 <= int(day) <= 31:
                yield f"{int(day)} {_MONTHS[int(month) - 1]} {year}"
