"""Quantities of texts: numbers with their sign, unit or currency, in digits or in English or German words.

Two quantities are equal if they mean the same, however they are written: `.5` and `0.5`, `9:00` and `9 am`, `two weeks`
and `14 days`, `12,5 %` and `12.5%`, `World War II` and `World War 2`. `$20` is not `€20`, `-5` is not `5`, and version
2.10 is not version 2.1.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

from rageval_spec.libraries import compile_later

Units = frozenset[tuple[str, Decimal]]
"""What a number may count: kinds such as `time`, each with its factor. `pounds` are a weight or a currency."""
_NO_UNIT: Units = frozenset()
_PERCENT = ("share", Decimal("0.01"))
_SHARE: Units = frozenset({("share", Decimal(1))})
_TIME_OF_DAY: Units = frozenset({("clock", Decimal(1))})


class Quantity(NamedTuple):
    """A number of a text.

    Attributes:
        text: it, as the text writes it, with its unit.
        start, end: where it stands.
        values: its value; several if it can be read in several ways: `1.000` is 1 and 1000.
        units: what it counts, if that is a known unit.
        head: the word before the number of a version, a chapter or a war, in lower case; else "".
        digits: its digits if `head` is not "" and they have a full stop.
        is_word: whether it is written in words.
        may_be_word: whether it can be another word too: `second`, `a week`, the numeral I.
    """

    text: str
    start: int
    end: int
    values: frozenset[Decimal]
    units: Units = _NO_UNIT
    head: str = ""
    digits: str = ""
    is_word: bool = False
    may_be_word: bool = False


# --- Units ---

_UNIT_WORDS = """
time 1: seconds sec secs sekunden s
time 60: minutes min mins minuten
time 3600: hours h hr hrs stunden std
time 86400: days tage tagen
time 604800: weeks wk wks wochen
months 1: months monate monaten
months 12: years yr yrs jahre jahren
months 120: decades jahrzehnte jahrzehnten
months 1200: centuries jahrhunderte jahrhunderten
time .001: milliseconds ms millisekunden
length .001: millimeters millimetres mm millimeter
length .01: centimeters centimetres cm zentimeter
length 1: meters metres metern
length 1000: kilometers kilometres km kilometer kilometern
length .0254: inches
length .3048: feet ft foot
length .9144: yards yd
length 1609.344: miles mi mile meilen
mass .001: milligrams mg milligramm
mass 1: grams g gramm
mass 1000: kilograms kilos kg kilogramm
mass 1000000: tonnes tons tonnen
mass 28.349523125: ounces oz
mass 453.59237: pounds lb lbs
volume .001: milliliters millilitres ml milliliter
volume 1: liters litres l liter
volume 3.785411784: gallons
area 1: acres
area 2.471: hectares ha hektar
data 1: kb kilobytes
data 1000: mb megabytes
data 1000000: gb gigabytes
data 1000000000: tb terabytes
speed 1: km/h kmh kph
speed 1.609344: mph
celsius 1: °c celsius
fahrenheit 1: °f fahrenheit
power 1: w watt watts
power 1000: kw kilowatt kilowatts
power 1000000: mw megawatt megawatts
energy 1: kwh
share .01: % percent percents pct prozent percentage
EUR 1: € eur euro euros
EUR .01: cents
USD 1: $ us$ usd dollars
USD .01: cents
GBP 1: £ gbp pounds quid pfund
JPY 1: ¥ jpy yen
CNY 1: ¥ cny rmb yuan
CHF 1: chf franken francs
INR 1: ₹ inr rupees
KRW 1: ₩ krw won
RUB 1: ₽ rub rubles roubles
"""
_CURRENCY_SIGN = r"(?:US)?\$|[€£¥₹₩₽]|\b(?:EUR|USD|GBP|JPY|CNY|CHF|INR)\b"


def _read_units() -> Mapping[str, Units]:
    found: dict[str, Units] = {}
    for line in _UNIT_WORDS.strip().splitlines():
        unit, _, words = line.partition(": ")
        kind, factor = unit.split()
        for word in words.split():
            for form in (word, *_list_singulars(word)):
                found[form] = found.get(form, _NO_UNIT) | {(kind, Decimal(factor))}
    return found


def _list_singulars(word: str) -> Iterator[str]:
    """`day` of `days`, `century` of `centuries`, `woche` of `wochen`; a form that is no word does no harm."""
    if len(word) > 3 and word.endswith("s"):
        yield word[:-3] + "y" if word.endswith("ies") else word[:-1]
    if word.endswith(("inches", "ages")):
        yield word[:-2]
    if len(word) > 4 and word.endswith("n"):
        yield word[:-1]
    if word in ("tage", "jahre", "monate", "jahrzehnte", "jahrhunderte"):
        yield from (word[:-1], f"{word[:-1]}es", f"{word[:-1]}s")


_UNITS = {**_read_units(), "per cent": frozenset({_PERCENT})}
_CURRENCIES = frozenset(kind for units in _UNITS.values() for kind, _ in units if kind.isupper())


# --- Numbers in words ---

SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "hundert": 10**2,
    "tausend": 10**3, "millionen": 10**6, "milliarde": 10**9, "milliarden": 10**9, "billionen": 10**12,
    "dozen": 12, "dutzend": 12,
}  # fmt: skip
_SHORT_SCALES = {
    "k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "b": 10**9, "bn": 10**9, "mrd": 10**9, "tn": 10**12,
}  # fmt: skip
_SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
""".split()  # noqa: SIM905 - a list of 20 strings is harder to read
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth
""".split()  # noqa: SIM905 - a list of 20 strings is harder to read
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_TENTHS = {f"{word[:-1]}ieth": number for word, number in _TENS.items()}
_GERMAN_SMALL = """
null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn
neunzehn
""".split()  # noqa: SIM905 - a list of 20 strings is harder to read
_GERMAN_TENS = {
    "zwanzig": 20, "dreißig": 30, "dreissig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70,
    "achtzig": 80, "neunzig": 90,
}  # fmt: skip
_GERMAN_ORDINAL = compile_later(r"(?:t|st)e[nrsm]?")
_GERMAN_ROOTS = {"er": 1, "drit": 3, "sieb": 7}
"""Ordinals that have another root than the number: `erste`, `dritte`, `siebte`."""
_ONES = frozenset(["a", "an", "one", "ein", "eine", "einen", "einem", "einer", "eines"])
_FRACTIONS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "tenth": 10, "tenths": 10, "drittel": 3, "viertel": 4, "fünftel": 5, "zehntel": 10,
}  # fmt: skip
_ORDINAL = compile_later(r"(?:st|nd|rd|th|te[nrsm]?)$")
_HALVES = frozenset(["half", "halb", "halbe", "halben", "halber", "halbes", "hälfte"])
_DETERMINERS = frozenset(
    ("the", "its", "his", "her", "their", "our", "der", "die", "das", "dem", "den", "im", "am", "zum")
)
_TIMES_OF_DAY = {"noon": 720, "midday": 720, "mittag": 720, "midnight": 0, "mitternacht": 0}


@cache
def _below_hundred() -> Mapping[str, int]:
    german = {word: number for number, word in enumerate(_GERMAN_SMALL)} | _GERMAN_TENS
    german |= {
        f"{one}und{ten}": number + small
        for ten, number in _GERMAN_TENS.items()
        for small, one in enumerate(_GERMAN_SMALL[:10])
        if small
    }
    english = {word: number for words in (_SMALL, _ORDINALS) for number, word in enumerate(words)}
    return {**german, **english, **_TENS, **_TENTHS, "dozen": 12, "dutzend": 12, "zwo": 2, "eins": 1}


@lru_cache(maxsize=50_000)
def _read_word(word: str) -> Decimal | None:
    """The value of a number word below a hundred, or of a German one of any length: `zweihundertfünf`."""
    known = _below_hundred()
    if word in known:
        return None if word == "ein" else Decimal(known[word])
    if word.endswith("einhalb") and (whole := known.get(word.removesuffix("einhalb"))) is not None:
        return whole + Decimal("0.5")
    if word == "anderthalb":
        return Decimal("1.5")
    if word.endswith(("te", "ten", "ter", "tes", "tem")):
        root = _GERMAN_ORDINAL.sub("", word[-4:]).join((word[:-4], "")) if len(word) > 4 else word
        number = _GERMAN_ROOTS.get(root) or _read_german(root)
        return None if number is None else Decimal(number)
    number = _read_german(word) if "hundert" in word or "tausend" in word else None
    return None if number is None else Decimal(number)


def _read_german(word: str) -> int | None:
    for scale, factor in (("tausend", 1000), ("hundert", 100)):
        if scale in word:
            before, _, after = word.partition(scale)
            many, rest = _read_german(before) if before else 1, _read_german(after.removeprefix("und")) if after else 0
            return None if many is None or rest is None else many * factor + rest
    return _below_hundred().get(word)


# --- Numbers in digits ---

_SPACE = "[ \u00a0\u2009\u202f]"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?)"
)
DATE = compile_later(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?\b"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b(?![.,]?\d|%)|\b{_MONTH} \d{{4}}\b|\b\d{{4}}-\d\d?-\d\d?\b"
)
"""A date with a month in English, or `1999-05-12`."""
_DIGITS = compile_later(
    rf"(?<![\w.,])(?P<sign>[-\u2212\u2013+])?(?:(?P<before>{_CURRENCY_SIGN}){_SPACE}?)?(?P<inner>[-\u2212])?(?P<version>v\.?)?"
    rf"(?P<digits>\d{{1,3}}(?:{_SPACE}\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,'’]\d+)*|[.]\d+)(?P<ordinal>(?:st|nd|rd|th|s)\b)?",
    re.IGNORECASE,
)
_CLOCK = compile_later(
    rf"(?<![\d:.,])(\d\d?)(?:[:.](\d\d))?(?::\d\d)?{_SPACE}?([ap])\.?m\b\.?"
    rf"|(?<![\d:.,])(\d\d?)(?:[:.](\d\d))?{_SPACE}?(?:Uhr|o[’']clock)\b|(?<![\d:.,])(\d\d?):(\d\d)(?!\d|:\d)",
    re.IGNORECASE,
)
_SIMPLE_FRACTION = compile_later(r"(?<![\d./-])([1-9])/([2-9]|10)(?![\d./-])")
_GLYPHS = {"¼": ".25", "½": ".5", "¾": ".75"}
_MIXED_NUMBER = compile_later(rf"(\d)?{_SPACE}?([{''.join(_GLYPHS)}])")
DIGIT = compile_later(r"\d")
_WORD = compile_later(r"[^\W\d_]+")
_UNIT = compile_later(rf"(?:{_SPACE}|-)?(km/h|per cent|°[CF]|[%$€£¥₹₩₽]|[^\W\d_]+)", re.IGNORECASE)
_UNIT_NAME = compile_later(r"[%$€£¥₹₩₽]|[^\W\d_]+")
_SECOND_WORD = compile_later(rf"{_SPACE}([^\W\d_]+)")
_BEFORE = compile_later(r"([^\W\d_]+)(?:\.|\s)\s?$")
_NEGATIVE = compile_later(r"(?:minus|negative)\s$", re.IGNORECASE)
_BELOW_ZERO = compile_later(
    r"(?: degrees?|°| Grad)?(?: ?C\b| ?F\b| Celsius| Fahrenheit)? (?:below zero|unter null)", re.IGNORECASE
)
_FALLS = compile_later(
    r"\b(?:f[ae]ll|decreas|declin|drop|lower|loss|los[et]|reduc|down\b|shr[aiu]nk|deficit|sank|sink|gesunken|rückgang"
    r"|verlust|verlor|gefallen|fiel)\w*(?!\w*,? (?:to|auf|zu)\b)[^.;!?]*$",
    re.IGNORECASE,
)
_LOSS = compile_later(
    r"[ -](?:decreas|declin|drop|lower|loss|reduc|rückgang|verlust|weniger\b|less\b|fewer\b)", re.IGNORECASE
)
_LINK = compile_later(r"\s*(?:-|–|to|bis|and|or|und|oder|,|&)\s*", re.IGNORECASE)
_YEAR = compile_later(r"(?:1\d|20)\d\d")
_ROMAN = compile_later(r"\b(?=[XVI])(X{0,3})(IX|IV|V?I{0,3})\b(?!['’.-]\w)")
_VERSIONS = frozenset(["version", "v", "release"])
_SENTENCE_END = compile_later(r"(?:^|[.!?:;\n]\s*[\"'“(]?)$")


def spell_fractions(text: str) -> str:
    """The text with `2.5` for `2½`."""
    if text.isascii():
        return text
    return _MIXED_NUMBER.sub(lambda match: (match[1] or "0") + _GLYPHS[match[2]], text)


@lru_cache(maxsize=4_000)
def find_quantities(text: str) -> tuple[Quantity, ...]:
    """The quantities of a text in order, as it is after `spell_fractions`. Parts of dates are numbers too."""
    text = spell_fractions(text)
    words = {word for word in _WORD.findall(text) if _may_be_number(word)}
    clocks = list(_find_clocks(text, words))
    numbers = fractions = list[Quantity]()
    if DIGIT.search(text):
        shares = ((found, Decimal(found[1]) / Decimal(found[2])) for found in _SIMPLE_FRACTION.finditer(text))
        fractions = _drop_covered((Quantity(found[0], *found.span(), _round(share)) for found, share in shares), clocks)
        numbers = _drop_covered(_find_digits(text), [*clocks, *fractions])
    if not (words or clocks or fractions or numbers):
        return ()
    told = [*_drop_covered(_find_words(text), numbers), *_find_numerals(text)] if words else []
    found = [*clocks, *fractions, *numbers, *told]
    return tuple(_share_units(text, sorted(found, key=lambda one: one.start)))


def _drop_covered(found: Iterator[Quantity], others: Sequence[Quantity]) -> list[Quantity]:
    return [one for one in found if not any(one.start < other.end and one.end > other.start for other in others)]


@lru_cache(maxsize=50_000)
def _may_be_number(word: str) -> bool:
    """Whether a word can begin a number or be a time of day or a Roman numeral. Few words can."""
    small = word.lower()
    is_known = small in _ONES or small in _HALVES or small in _TIMES_OF_DAY or _read_word(small) is not None
    return is_known or word[0] in "XVI"


def _find_clocks(text: str, words: Iterable[str]) -> Iterator[Quantity]:
    for match in _CLOCK.finditer(text) if DIGIT.search(text) else ():
        hour, minute = int(match[1] or match[4] or match[6]), int(match[2] or match[5] or match[7] or 0)
        if match[3]:
            hour = hour % 12 + 12 * (match[3] in "pP")
        if hour <= 24 and minute < 60:
            yield Quantity(match[0], *match.span(), frozenset({Decimal(hour % 24 * 60 + minute)}), _TIME_OF_DAY)
    if _TIMES_OF_DAY.keys().isdisjoint(map(str.lower, words)):
        return
    for match in _WORD.finditer(text):
        if (time := _TIMES_OF_DAY.get(match[0].lower())) is not None:
            values = frozenset({Decimal(time)})
            yield Quantity(match[0], *match.span(), values, _TIME_OF_DAY, is_word=True, may_be_word=True)


def _find_digits(text: str) -> Iterator[Quantity]:
    for match in _DIGITS.finditer(text):
        digits, start, end = match["digits"], match.start("digits"), match.end("digits")
        values = frozenset(read_marks(re.sub(rf"{_SPACE}|['’]", "", digits)))
        word, behind = _read_unit_word(text, match.end())
        factor = SCALES.get(word) or _SHORT_SCALES.get(word)
        if factor:
            values = frozenset(value * factor for value in values) | (values if word in _SHORT_SCALES else frozenset())
            end = behind
        units, end = (_NO_UNIT, end) if match["ordinal"] else _find_unit(text, end, digits)
        start = match.start("version") if match["version"] else start
        if match["before"]:
            units, start = _UNITS[match["before"].lower()], match.start("before")
        before = text[: match.start()]
        is_range = bool(match["sign"]) and before[-1:].strip() != "" and before[-1:] not in "(["
        if match["sign"] and not is_range:
            start = match.start("sign")
        is_negative = ((match["sign"] or "+") != "+" and not is_range) or bool(match["inner"])
        named = None if is_negative else _NEGATIVE.search(before[-12:])
        below = _BELOW_ZERO.match(text, match.end())
        if named or below:
            is_negative = True
            start -= len(named[0]) if named else 0
            end = below.end() if below else end
        if is_negative:
            values = frozenset(-value for value in values)
        elif _falls(text, match.start(), end):
            values |= {-value for value in values}
        head = "version" if match["version"] else "" if units or factor else _find_head(before, digits)
        shown = digits if head and "." in digits else ""
        yield Quantity(_join_words(text, start, end), start, end, values, units, head, shown)


def _falls(text: str, start: int, end: int) -> bool:
    """Whether a number is what something fell by: a loss of 5 is -5."""
    before = text[max(start - 40, 0) : start]
    return bool(_FALLS.search(before) or _LOSS.match(text, end)) and not re.search(r"\b(?:to|auf)\s*$", before)


def _read_unit_word(text: str, at: int) -> tuple[str, int]:
    match = _UNIT.match(text, at)
    return (match[1].lower(), match.end()) if match else ("", at)


def _find_unit(text: str, at: int, digits: str = "") -> tuple[Units, int]:
    """The unit behind a number and where it ends. One other word may come between: `14 business days`."""
    word, end = _read_unit_word(text, at)
    if word in _UNITS:
        return _UNITS[word], end
    between = _SECOND_WORD.match(text, end) if len(word) > 3 and not _YEAR.fullmatch(digits) else None
    if between and len(between[1]) > 2 and word not in _FRACTIONS and between[1].lower() in _UNITS:
        return _UNITS[between[1].lower()], between.end()
    return _NO_UNIT, at


def _find_head(before: str, digits: str) -> str:
    """The word that a number belongs to like a name: `version 2.1`, `World War 2`, `Python 3.10`."""
    match = _BEFORE.search(before[-40:])
    if match is None or _YEAR.fullmatch(digits):
        return ""
    word = match[1].lower()
    if word in _VERSIONS:
        return "version"
    begins = _SENTENCE_END.search(before[-40:][: match.start()]) and len(before) < 40
    return word if match[1][0].isupper() and ("." in digits or not begins) and not match[0].startswith(".") else ""


def _find_numerals(text: str) -> Iterator[Quantity]:
    for match in _ROMAN.finditer(text):
        ones = {"": 0, "I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}
        value = 10 * len(match[1]) + ones[match[2]]
        if value:
            head = _find_head(text[: match.start()], "0.0")
            values, may_be_word = frozenset({Decimal(value)}), len(match[0]) == 1 or not head
            yield Quantity(match[0], *match.span(), values, head=head, is_word=True, may_be_word=may_be_word)


def _find_words(text: str) -> Iterator[Quantity]:
    """The numbers written as words, such as `two hundred and five`; an incomplete one ends where the next begins."""
    words = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        found = _read_number_words(text, words, at)
        if found is None:
            at += 1
            continue
        quantity, at = found
        yield quantity


def _read_number_words(text: str, words: Sequence[tuple[str, int, int]], at: int) -> tuple[Quantity, int] | None:
    first, start, end = words[at]
    is_one = first in _ONES
    if first not in _HALVES and not is_one and _read_word(first) is None:
        return None
    before = text[:start]
    if before[-1:] == "-" and before[-2:-1].isdigit():
        return None

    def word(place: int) -> str:
        """A word if only spaces or a hyphen part it from the one before."""
        if place >= len(words) or text[words[place - 1][2] : words[place][1]].strip(" -\u00a0\n"):
            return ""
        return words[place][0]

    if first in _HALVES:
        return _read_half(text, words, at)
    total, current, last, place = Decimal(0), Decimal(0), "", at
    while place < len(words):
        now = first if place == at else word(place)
        value = Decimal(1) if place == at and is_one else _read_word(now)
        if now == "second" and place > at:
            break
        if now in SCALES and last:
            scale = SCALES[now]
            current = (current or Decimal(1)) * scale
            total, current = (total, current) if scale == 100 else (total + current, Decimal(0))
        elif value is not None and now and (not last or last in SCALES or (last in _TENS and 0 < value < 10)):
            current += value
        elif not (now in ("and", "und") and last in SCALES and _read_word(word(place + 1)) is not None):
            break
        last = last if now in ("and", "und") else now
        place += 1
    value, end = total + current, words[place - 1][2]
    parts = word(place)
    is_share = parts not in _ORDINALS or first == "one" or word(place + 1) in ("", "of", "der", "des")
    is_share = is_share or (at > 0 and words[at - 1][0] in ("by", "um"))
    if parts in _FRACTIONS and is_share and not _ORDINAL.search(last):
        end, values = words[place][2], _round(value / _FRACTIONS[parts])
        return Quantity(_join_words(text, start, end), start, end, values, _SHARE, is_word=True), place + 1
    if word(place) in ("and", "und") and word(place + 1) in _ONES and word(place + 2) in _HALVES:
        value, place = value + Decimal("0.5"), place + 3
        end = words[place - 1][2]
    units, behind = _find_unit(text, end)
    if is_one and place == at + 1 and not units and first != "one":
        return None
    is_negative = _NEGATIVE.search(before[-12:]) or _BELOW_ZERO.match(text, end)
    values = frozenset({-value if is_negative else value})
    if _falls(text, start, behind):
        values |= {-value}
    previous = words[at - 1][0] if at else ""
    may_be_word = (
        (is_one and place == at + 1 and (first != "one" or not units))
        or first in ("first", "zeroth", "elf", "erste", "ersten", "erster", "erstes", "eins")
        or (first == "second" and previous not in _DETERMINERS)
        or (first == "acht" and not units)
    )
    written = _join_words(text, start, behind)
    return Quantity(written, start, behind, values, units, is_word=True, may_be_word=may_be_word), place


def _read_half(text: str, words: Sequence[tuple[str, int, int]], at: int) -> tuple[Quantity, int]:
    """`half`, `half an hour`, `half a million`."""
    _, start, end = words[at]
    value, place = Decimal("0.5"), at + 1
    near = [one for one, begin, _ in words[place : place + 2] if begin - end < 12]
    skip = 1 if near and near[0] in _ONES else 0
    if len(near) > skip and near[skip] in SCALES and near[skip] != "hundred":
        value, end = value * SCALES[near[skip]], words[place + skip][2]
        place += skip + 1
        units, end = _find_unit(text, end)
    else:
        units, behind = _find_unit(text, words[place][2] if skip else end)
        end = behind if units else end
        units = units or _SHARE
    previous = words[at - 1][0] if at else ""
    is_part = previous in {*_ORDINALS, *_DETERMINERS, "other", "ersten", "zweiten", "erste", "zweite"}
    written, may_be_word = _join_words(text, start, end), is_part and words[at][0] != "hälfte"
    return Quantity(written, start, end, frozenset({value}), units, is_word=True, may_be_word=may_be_word), place


def _join_words(text: str, start: int, end: int) -> str:
    return " ".join(text[start:end].split())


def _round(share: Decimal) -> frozenset[Decimal]:
    """A fraction as it is and rounded or cut: two thirds are 0.66, 0.67 and 0.667."""
    from decimal import ROUND_DOWN, ROUND_HALF_UP

    places = (Decimal("0.01"), Decimal("0.001"), Decimal("0.0001"))
    return frozenset({share.quantize(place, how) for place in places for how in (ROUND_DOWN, ROUND_HALF_UP)})


def read_marks(digits: str) -> Iterator[Decimal]:
    """Read full stops and commas, which separate thousands or decimals."""
    if digits.startswith("."):
        yield Decimal(f"0{digits}")
        return
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


def _share_units(text: str, found: Sequence[Quantity]) -> Iterator[Quantity]:
    """Give numbers of one list or range the unit or head that one of them has: `10 to 14 days`, `Parts I and II`."""
    shared = list(found)
    pairs = list(zip(range(len(found)), range(1, len(found)), strict=False))
    linked = [(a, b) for a, b in pairs if _LINK.fullmatch(text[found[a].end : found[b].start])]
    for to, by in [*((a, b) for a, b in reversed(linked)), *((b, a) for a, b in linked)]:
        one, other = shared[to], shared[by]
        is_currency = any(kind in _CURRENCIES for kind, _ in other.units)
        is_time = any(kind == "clock" for kind, _ in other.units)
        takes = not (one.units or one.head or is_time or _YEAR.fullmatch(one.text))
        if takes and other.units and (by > to or is_currency):
            shared[to] = one._replace(units=other.units)
        if by < to and other.head and not one.head and not one.units:
            shared[to] = one._replace(head=other.head)
    yield from shared


# --- Comparison ---


class Sources:
    """The quantities of some texts, by their values and heads."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._values: dict[Decimal, list[Quantity]] = {}
        self._heads: dict[str, list[Quantity]] = {}
        self._digits: set[str] = set()
        for one in (one for text in texts for one in find_quantities(text)):
            for value in {*one.values, *_to_bases(one)}:
                self._values.setdefault(value, []).append(one)
            if one.head:
                self._heads.setdefault(one.head, []).append(one)
            self._digits.add(one.digits or one.text)

    def has_head(self, head: str) -> bool:
        return head in self._heads

    def contain(self, wanted: Quantity, said: str = "") -> bool:
        """Whether they contain a quantity. `said` is the text that says it."""
        if wanted.head and (named := self._heads.get(wanted.head)):
            if any(_have_same_label(wanted, one) for one in named):
                return True
            return any(not one.head and _ORDINAL.search(one.text.lower()) for one in self._find(wanted))
        if not wanted.values or (wanted.digits and wanted.head == "version"):
            return (wanted.digits or wanted.text) in self._digits
        return any(
            is_equal(wanted, one) and not self._lacks_unit(wanted, one, said)
            for one in self._find(wanted)
            if not (one.may_be_word and one.text in ("I", "V", "X"))
        )

    def _find(self, wanted: Quantity) -> Iterator[Quantity]:
        for value in {*wanted.values, *_to_bases(wanted)}:
            yield from self._values.get(value, ())

    def _lacks_unit(self, wanted: Quantity, one: Quantity, said: str) -> bool:
        """Whether only one of two is a percentage or an amount of money, and the other's text names no such thing."""
        if wanted.units and not one.units:
            kinds = {kind for kind, factor in wanted.units if kind in _CURRENCIES or (kind, factor) == _PERCENT}
            return bool(kinds) and not _list_kinds(self._text) & kinds
        return not wanted.units and _PERCENT in one.units and "share" not in _list_kinds(said)


@lru_cache(maxsize=1_000)
def _list_kinds(text: str) -> frozenset[str]:
    """What the units of a text measure, beside a number or not: the head of a column may say it."""
    words = (found.lower() for found in _UNIT_NAME.findall(text))
    return frozenset(kind for word in words for kind, _ in _UNITS.get(word, ()))


def _have_same_label(one: Quantity, other: Quantity) -> bool:
    if one.digits or other.digits:
        return (one.digits or one.text) == (other.digits or other.text)
    return bool(one.values & other.values)


def _to_bases(one: Quantity) -> Iterator[Decimal]:
    """The values in the smallest unit; of a time of day, the hours that may stand for it: 17 and 5."""
    for value in one.values:
        for kind, factor in one.units:
            yield value * factor
            if kind == "clock":
                yield from (value / 60, value / 60 % 12)


def is_equal(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities mean the same; a number without a unit may count anything."""
    if one.head and one.head == other.head:
        return _have_same_label(one, other)
    if one.units and other.units:
        mine = {(kind, value * factor) for value in one.values for kind, factor in one.units}
        return any((kind, value * factor) in mine for value in other.values for kind, factor in other.units)
    if one.values & other.values:
        return True
    bare, counted = (one, other) if not one.units else (other, one)
    if any(kind == "clock" for kind, _ in counted.units):
        return any(value * 60 % 720 == time % 720 for value in bare.values for time in counted.values)
    shares = {value * factor for value in counted.values for kind, factor in counted.units if kind == "share"}
    return not shares.isdisjoint(bare.values)


def have_same(one: str, other: str) -> bool:
    return not find_missing(one, other) and not find_missing(other, one)


def find_missing(text: str, other: str) -> list[Quantity]:
    there = [one for one in find_quantities(other) if not one.may_be_word]
    said = [one for one in find_quantities(text) if not one.may_be_word]
    return [one for one in said if not any(is_equal(one, another) for another in there)]
