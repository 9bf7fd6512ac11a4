"""The similarity of two short texts, as measured in question answering.

On ASCII, both measures equal those of the SQuAD 2.0 evaluation script (Rajpurkar, Jia and Liang, Know What You Don't
Know, ACL 2018) to the last digit. Beyond ASCII, the rules are extended as in MLQA's script (Lewis et al., MLQA, ACL
2020): all Unicode punctuation is removed, and scripts without white space are compared by character.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WITHOUT_SPACES = re.compile(
    "["
    "\u3005-\u3007"  # marks that stand for a Han character
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"  # Han
    "]"
)


def normalize_answer(text: str) -> str:
    """A text without differences that should not decide whether an answer is right, its words joined by single spaces.

    In lower case, without punctuation (ASCII symbols such as `$` and `+` count as punctuation, other scripts' symbols
    do not), English articles and surplus white space. Accents are composed (NFC), never removed. Can be empty.
    """
    lowered = unicodedata.normalize("NFC", text.lower())
    return " ".join(_ARTICLES.sub(" ", _remove_punctuation(lowered)).split())


def _remove_punctuation(text: str) -> str:
    words = text.translate(_WITHOUT_ASCII_PUNCTUATION)
    if words.isascii():
        return words
    return "".join(character for character in words if not unicodedata.category(character).startswith("P"))


def tokenize_answer(text: str) -> list[str]:
    """The words of a normalised text; Han characters and kana each count as a word."""
    return split_words(normalize_answer(text))


def split_words(text: str) -> list[str]:
    """The words of a text, as white space separates them; Han characters and kana each count as a word."""
    return _WITHOUT_SPACES.sub(lambda match: f" {match.group()} ", text).split()


def exact_match(answer: str, references: Sequence[str]) -> bool:
    """Whether an answer equals one of the references once both are normalised; two empty texts are equal.

    Raises:
        ValueError: there is no reference.
    """
    _require(references)
    wanted = normalize_answer(answer)
    return any(normalize_answer(reference) == wanted for reference in references)


def token_f1(answer: str, references: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of an answer's words, counting repetitions, in [0, 1].

    The best value over all references. If one of the two texts has no words: 1 if neither has any, else 0.

    Raises:
        ValueError: there is no reference.
    """
    _require(references)
    tokens = Counter(tokenize_answer(answer))
    return max(_f1(tokens, Counter(tokenize_answer(reference))) for reference in references)


def _f1(answer: Counter[str], reference: Counter[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (answer & reference).total()
    if not common:
        return 0.0
    precision, recall = common / answer.total(), common / reference.total()
    return 2 * precision * recall / (precision + recall)


def _require(references: Sequence[str]) -> None:
    if not references:
        raise ValueError("an answer needs at least one reference to be compared with")
