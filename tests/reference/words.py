"""Words and their support in other texts, slowly and obviously: regular expressions, lists and sets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

UNSPACED = "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u4e00-\u9fff\uac00-\ud7ff\uff66-\uff9f"
MARKS = "\u0300-\u036f\u3099\u309a\u00ad\u200d"
LETTER = rf"[^\W\d_{UNSPACED}{MARKS}]"
WORD = rf"(?:[^\W_{UNSPACED}{MARKS}]|[{MARKS}])"
RUN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}][{UNSPACED}{MARKS}]*)"
    rf"|(?P<acronym>{LETTER}(?:\.{LETTER}(?!{WORD}|[{UNSPACED}]))+)"
    rf"|(?P<spaced>{WORD}(?:{WORD}|(?<={LETTER})['’](?={LETTER})|(?<=[0-9])[.,](?=[0-9]))*)"
)


class Word(NamedTuple):
    text: str
    kind: Literal["function", "content", "number"]
    linked: bool = False


def list_words(text: str, function_words: Collection[str]) -> list[Word]:
    found: list[Word] = []
    end, spaced = 0, False
    for run in RUN.finditer(text):
        linked = spaced and text[end : run.start()] == "-"
        end, spaced = run.end(), run.lastgroup == "spaced"
        found += read_run(run, linked, function_words, shouted=not any(map(str.islower, text)))
    return found


def read_run(run: re.Match[str], linked: bool, function_words: Collection[str], shouted: bool) -> list[Word]:
    written = run[0]
    folded = fold(written)
    if run.lastgroup == "unspaced":
        pairs = [folded[at : at + 2] for at in range(len(folded) - 1)] or [folded]
        return [Word(pair, "content") for pair in pairs if pair]
    if run.lastgroup == "acronym":
        folded = folded.replace(".", "")
        is_function = not written[0].isupper() and folded in function_words
        return [Word(folded, "function" if is_function else "content")]
    number = re.match(r"[0-9][0-9.,]*", folded)
    if number:
        ending = folded[number.end() :]
        words = [Word(normalize(number[0]), "number", linked)]
        return (
            words
            if ending in ("", "s", "st", "nd", "rd", "th")
            else [*words, *read_word(ending, False, function_words)]
        )
    capitals = all(map(str.isupper, written)) and written not in ("A", "I") and not shouted
    return read_word(folded, linked, () if capitals else function_words)


def read_word(folded: str, linked: bool, function_words: Collection[str]) -> list[Word]:
    bare = re.sub(r"^(c|d|j|l|m|n|qu|s|t)'(?=..)", "", folded)
    bare = re.sub(r"(n't|'(d|ll|m|re|s|ve))$", "", bare).replace("'", "")
    kind: Literal["function", "content"] = "function" if bare in function_words else "content"
    return [Word(stem(bare), kind, linked)] if bare else []


def fold(run: str) -> str:
    letters = "".join(letter for letter in unicodedata.normalize("NFKD", run) if letter not in "\u00ad\u200d")
    letters = re.sub("[\u0300-\u036f]", "", letters)
    small = "".join(letter.lower() for letter in letters)
    return unicodedata.normalize("NFC", small).replace("ß", "ss").replace("ς", "σ").replace("’", "'")


def normalize(number: str) -> str:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", number):
        number = number.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", number):
        number = number.replace(".", "")
    elif re.fullmatch(r"\d+,\d+", number):
        number = number.replace(",", ".")
    if not re.fullmatch(r"\d+(\.\d+)?", number):
        return number
    whole, _, fraction = number.partition(".")
    return (whole.lstrip("0") or "0") + f".{fraction}".rstrip("0").rstrip(".")


def stem(word: str) -> str:
    if not re.fullmatch("[a-z]+", word):
        return word
    if re.search("..ies$", word):
        word = word[:-3] + "y"
    elif re.search("(.sses|.shes|.ches|..xes|..zes)$", word):
        word = word[:-2]
    elif len(word) > 3 and re.search("[^sui]s$", word):
        word = word[:-1]
    if re.search("..ied$", word):
        word = word[:-3] + "y"
    else:
        part = re.fullmatch("(...+)ing", word) or re.fullmatch("(...+)ed", word)
        if part and re.search("[aeiouy]", part[1]):
            word = re.sub(r"(?<=..)([^aeioulsyz])\1$", r"\1", part[1])
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def share_words(text: str, sources: Sequence[str], function_words: Collection[str]) -> tuple[int, int]:
    """Points that any of the sources has, and points in all."""
    words = list_words(text, function_words)
    if all(word.kind == "function" for word in words):
        return 0, 0
    read = [list_words(source, function_words) for source in sources]
    known = {word.text for source in read for word in source}
    joined = {compound for source in read for _, compound in list_compounds(source)}
    for parts, compound in list_compounds(words):
        if compound in known | joined:
            known |= set(parts)
    known |= joined
    worth: dict[str, int] = {}
    for word in words:
        worth[word.text] = max(worth.get(word.text, 0), {"function": 1, "content": 5, "number": 10}[word.kind])
    neighbours = {pair for source in read for pair in list_pairs(source)}
    pairs = set(list_pairs(words))
    found = sum(points for word, points in worth.items() if word in known) + len(pairs & neighbours)
    return found, sum(worth.values()) + len(pairs)


def list_pairs(words: Sequence[Word]) -> list[tuple[str, str]]:
    return [(first.text, second.text) for first, second in pairwise(words)]


def list_compounds(words: Sequence[Word]) -> list[tuple[list[str], str]]:
    """Words that hyphens link, from the first of each chain to every other one, and the word that they are without."""
    compounds: list[tuple[list[str], str]] = []
    parts: list[str] = []
    for word in words:
        parts = [*parts, word.text] if word.linked and len(parts) < 8 else [word.text]
        if len(parts) > 1:
            compounds.append((parts, "".join(parts)))
    return compounds
