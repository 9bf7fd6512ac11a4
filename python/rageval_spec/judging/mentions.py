"""Finds the numbers and names of a text that none of its sources contain.

Numbers and dates are read in any of their usual forms: `1,000`, `3.5 million`, `twenty-one`. Names count as contained
also in another form: `WHO` and `World Health Organization`, `Юрием` and `Юрий`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec import kernels
from rageval_spec.judging.language import find_language

if TYPE_CHECKING:
    from rageval_spec.kernels import WordShare


_CITATION = re.compile(r"\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")
"""`[1]`, `[2, 3]`: how an answer numbers its sources."""
_NUMBERED_SOURCE = re.compile(
    r"\b(?:context|document|doc|source|passage|chunk|snippet|excerpt)s? (?:#|no\. ?|nos\. ?)?\d{1,3}\b"
    r"(?:(?:,| and|, and| &) \d{1,3}\b(?![.,]\d))*(?![.,]\d|%)|\b(?:context|document|source|passage)s?(?= +\[\d)",
    re.IGNORECASE,
)
"""`Context 2`, `documents 1 and 3`, and the first word of `Document [1]`."""
_LIST_NUMBER = re.compile(r"^[\s*_#>-]*(?:(?:step|schritt) \d{1,3}\b|\d{1,3}[.)]\s+)", re.IGNORECASE)
_OPENING_MARKS = "\"'“”‘’„«‹*_#>-–—•:([¿¡ \t\n"
"""Characters that can come before the first word of a sentence."""
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[$€£¥]?\d[\d.,]*%?(?: [a-z]+)?")
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

    A name is found if each of its words is in a source. A number is found if its value is in a source, however it is
    written: `1,000` and `1000`, `5%` and `5 percent`, `3 million` and `3,000,000`, `12` and `twelve`. So is a name that
    the sources abbreviate or spell out: `WHO` and `World Health Organization`. Citations such as `[2]` and `Context 2`
    and the numbers of a list are not looked up. Nor is a single capitalised word at the beginning of a text: it may be
    any word. In German, which capitalises all nouns, one unseen word by itself is not a missing name.
    """
    mentioned = [_list_mentions(text) for text, _ in pairs]
    sources = [found_in for _, found_in in pairs]
    wanted = [(name, found_in) for names, found_in in zip(mentioned, sources, strict=True) for name in names]
    found = iter(_look_up(wanted, threads))
    unseen = [[name for name in names if not next(found)] for names in mentioned]
    missing = _drop_other_forms(unseen, pairs)
    return [Mentions(len(names), tuple(absent)) for names, absent in zip(mentioned, missing, strict=True)]


def merge_mentions(parts: Sequence[Mentions]) -> Mentions:
    """Those of several texts together; what is missing from several is named once."""
    missing = dict.fromkeys(name for part in parts for name in part.missing)
    return Mentions(sum(part.total for part in parts), tuple(missing))


def _list_mentions(text: str) -> list[str]:
    """The numbers and names of a text that are looked up."""
    said = _drop_citations(text)
    return [name for name in kernels.names(said) if not _may_be_any_word(name, said)]


def _drop_citations(text: str) -> str:
    """A text without the numbers of sources and of lists, from its first word on."""
    said = _CITATION.sub(" ", _NUMBERED_SOURCE.sub(" ", spell_fractions(text)))
    return _LIST_NUMBER.sub("", said).lstrip(_OPENING_MARKS)


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
    """The names of each text without those that its sources write in another form."""
    last: Sequence[str] | None = None
    values: set[Decimal] = set()
    dates: list[str] = []
    for names, (text, sources) in zip(unseen, pairs, strict=True):
        numbers = [name for name in names if _DIGIT.search(name)]
        if numbers and sources is not last:
            values = {value for source in sources for value in read_numbers(source)}
            dates = [date for source in sources for date in (*kernels.names(source), *spell_dates(source))]
            last = sources
        others = {name for name in numbers if _is_number_in(name, [*sources, *dates], values)}
        left = [name for name in names if name not in others]
        yield left if len(left) + len(others) == len(numbers) else _drop_other_names(left, text, sources)


def _is_number_in(name: str, sources: Sequence[str], values: set[Decimal]) -> bool:
    """Whether sources contain a number or date; `values` are those of their numbers."""
    if not values.isdisjoint(_read_number(name)):
        return True
    version = re.compile(rf"(?<!\w)v{re.escape(name)}(?!\d|[.,]\d)", re.IGNORECASE)
    if name[0].isdigit() and any(version.search(source) for source in sources):
        return True
    return any(_look_up([(form, sources) for form in (name, *spell_dates(name))], 1))


def _drop_other_names(names: list[str], text: str, sources: Sequence[str]) -> list[str]:
    """The numbers, and the names that sources write in no other form."""
    said = _drop_citations(text)
    language = find_language_of(said, sources)

    def is_other(name: str) -> bool:
        words = name.split()
        are_there = _look_up([(word, sources) for word in words], 1)
        absent = [word for word, is_there in zip(words, are_there, strict=True) if not is_there]
        return may_be_noun(name, absent, said, language) or is_name_in(name, sources, language)

    return [name for name in names if _DIGIT.search(name) or not is_other(name)]


def _read_number(name: str) -> set[Decimal]:
    """The value of a number; nothing for a name or a date that contains one."""
    return read_numbers(name) if _NUMBER.fullmatch(name) else set()


_WORD = re.compile(r"[^\W\d_]+")
_TITLE = re.compile(r"(?:Mr|Mrs|Ms|Dr|Prof|Sir|Herr|Frau|Mme|M|Sr|Sra)\.? ")
_CURRENCIES = {"EUR": ("€", "euro"), "USD": ("$", "dollar"), "GBP": ("£", "pound"), "JPY": ("¥", "yen")}
_LETTERS_OF_LANGUAGES_WITH_CASES = re.compile("[\u0370-\u052f]")
"""Greek and Cyrillic."""
_LANGUAGES_WITH_CASES = frozenset({"cs", "fi", "hr", "hu", "pl", "sk", "sl", "tr"})
_ENDING = 3
"""The longest ending that a case is taken to have."""
_FEWEST_STEM_LETTERS = 3
_FEWEST_INITIALS = 2
_READ = 400
"""Characters of an answer and of its sources by which the language is told."""


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
        return _is_currency_in(name, sources) or _are_initials_in(name, sources)
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


def _is_currency_in(name: str, sources: Sequence[str]) -> bool:
    return any(form in source.lower() for form in _CURRENCIES.get(name, ()) for source in sources)


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


_SPACE = "[ \u00a0\u2009\u202f]"
_DIGITS = re.compile(
    rf"(?<![\w.,])(\d{{1,3}}(?:{_SPACE}\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,'’]\d+)*)(?:(?:{_SPACE}|-)?([a-z]+))?",
    re.IGNORECASE,
)
"""A number, and the word after it, which may multiply it."""
_FRACTIONS = {"¼": ".25", "½": ".5", "¾": ".75"}
_MIXED_NUMBER = re.compile(rf"(\d){_SPACE}?([{''.join(_FRACTIONS)}])")
_NUMERIC_DATE = re.compile(
    r"(?<![\d./-])(?:(\d{4})([./-])(\d\d?)\2(\d\d?)|(\d\d?)([./-])(\d\d?)\6(\d{4}))(?![\d/-]|\.\d)"
)
"""`1999-05-12`, or `12.5.1999`."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
""".split()  # noqa: SIM905 - a list of 20 strings is harder to read
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth
""".split()  # noqa: SIM905
_TENS = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_BELOW_HUNDRED = {
    **{word: number for words in (_SMALL, _ORDINALS) for number, word in enumerate(words)},
    **_TENS,
    **{f"{word[:-1]}ieth": number for word, number in _TENS.items()},
    "dozen": 12,
}


def read_numbers(text: str) -> set[Decimal]:
    """The values of the numbers of a text, in digits or in English words.

    A number that can be read in several ways has all these values: `1.000` is 1 and 1000, `5 m` is 5 and 5,000,000.
    Signs, currencies and units do not count.
    """
    text = spell_fractions(text)
    written = {value for match in _DIGITS.finditer(text) for value in _read_digits(match[1], (match[2] or "").lower())}
    return written | set(map(Decimal, _read_words(text.lower())))


def spell_fractions(text: str) -> str:
    """The text with `2.5` for `2½`."""
    return _MIXED_NUMBER.sub(lambda match: match[1] + _FRACTIONS[match[2]], text)


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


def _read_digits(digits: str, word: str) -> Iterator[Decimal]:
    for number in _read_marks(re.sub(rf"{_SPACE}|['’]", "", digits)):
        if word not in _SCALES:
            yield number
        if (factor := _SCALES.get(word) or _SHORT_SCALES.get(word)) is not None:
            yield number * factor


def _read_marks(digits: str) -> Iterator[Decimal]:
    """Read full stops and commas, which separate thousands or decimals."""
    marks = [mark for mark in digits if mark in ".,"]
    decimal_mark = marks[-1] if len({*marks}) == 2 and marks.count(marks[-1]) == 1 else None
    groups = re.split("[.,]", digits)
    if decimal_mark is None and marks and len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]):
        yield Decimal("".join(groups))
        if marks == ["."]:
            yield Decimal(digits)
    elif decimal_mark is not None or len(marks) < 2:
        whole, _, decimals = digits.rpartition(marks[-1]) if marks else (digits, "", "")
        yield Decimal(f"{re.sub('[.,]', '', whole)}.{decimals or 0}")


def _read_words(text: str) -> Iterator[int]:
    """The numbers written as words, such as `two hundred and five`; an incomplete one ends where the next begins."""
    total = current = 0
    last, before = "", ""
    for word in re.findall(r"[^\W\d_]+|[^\s-]", text):
        if word in _SCALES and (last or before in ("a", "one")):
            total, current = _multiply(total, current or 1, _SCALES[word])
            last = word
        elif word in _BELOW_HUNDRED:
            value = _BELOW_HUNDRED[word]
            if last and last not in _SCALES and not (last in _TENS and value < 10):
                yield total + current
                total = current = 0
            current += value
            last = word
        elif last and not (word == "and" and last in _SCALES):
            yield total + current
            total = current = 0
            last = ""
        before = word
    if last:
        yield total + current


def _multiply(total: int, current: int, factor: int) -> tuple[int, int]:
    return (total, current * factor) if factor == _SCALES["hundred"] else (total + current * factor, 0)
