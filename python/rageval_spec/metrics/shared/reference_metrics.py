"""Base classes of metrics that compare answers with references, without a judge.

A metric says how to compare one answer, and which references cannot be used:

    class RougeL(LexicalMetric[MetricNode]):
        def comparer(self) -> Comparer:
            return measure_rouge_l

`exact_match` and `token_f1` measure the similarity of two short texts, as in question answering. On ASCII, both equal
those of the SQuAD 2.0 evaluation script (Rajpurkar, Jia and Liang, Know What You Don't Know, ACL 2018) to the last
digit. Beyond ASCII, the rules are extended as in MLQA's script (Lewis et al., MLQA, ACL 2020): all Unicode
punctuation is removed, and scripts without white space are compared by character.

`compare_meanings` compares texts by the cosine of their embeddings.
"""

import string
import unicodedata
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias, TypeVar

from rageval_spec import kernels
from rageval_spec.data.findings import Failed
from rageval_spec.data.outcomes import AnyNote
from rageval_spec.data.samples import Sample
from rageval_spec.judging.cosine_scale import explain_values
from rageval_spec.libraries import compile_later, np
from rageval_spec.metrics.shared.answer_metrics import EMPTY_REFERENCE, FAILED_SYSTEM
from rageval_spec.plugin import (
    AnswerMetric,
    EmbeddingModel,
    Measured,
    Measurement,
    MetricNode,
    Role,
    note_truncated_texts,
)

N = TypeVar("N", bound=MetricNode)
Comparer: TypeAlias = Callable[[str, Sequence[str]], float]
"""A function from an answer and its references, at least one, to the value."""


class ReferenceMetric(AnswerMetric[N]):
    """A metric whose value depends only on an answer and its references."""

    group = "text"
    needs = frozenset({"answer", "reference"})
    reads_contexts = False
    always = ("no reference, or none that can be compared: unscorable", FAILED_SYSTEM)
    no_reference: ClassVar[str] = EMPTY_REFERENCE
    """Why there is no value if no reference can be used."""

    compares_blank: ClassVar[bool] = False
    """Whether an answer can be compared with a blank reference too."""

    def is_usable(self, reference: str) -> bool:
        """Whether a reference can be compared with; unusable ones are left out."""
        return self.compares_blank or bool(reference.strip())

    def usable_references(self, sample: Sample) -> list[str]:
        """The usable references of a sample, in order."""
        return [reference for reference in sample.references if self.is_usable(reference)]


class LexicalMetric(ReferenceMetric[N]):
    """A metric that compares the words or characters of one answer at a time, without a model."""

    @abstractmethod
    def comparer(self) -> Comparer:
        """The function that compares answers, with all its imports done; called once for all samples."""

    def prepare(self) -> None:
        self.comparer()

    def compute(self, samples: Sequence[Sample]) -> Measured:
        compare = self.comparer()
        # Fractions of a few words take few values: equal ones share one object, which saves 10 MB for 100,000 samples.
        unscorable, known = Measurement.unscorable(self.no_reference), dict[float, Measurement]()

        def measure(sample: Sample) -> Measurement:
            references = self.usable_references(sample)
            if not references:
                return unscorable
            value = compare(sample.answer or "", references)
            return known.get(value) or known.setdefault(value, Measurement.scored(value))

        return Measured([measure(sample) for sample in samples])


_ARTICLES = compile_later(r"\b(?:a|an|the)\b")
_WITHOUT_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WITHOUT_SPACES = compile_later(
    "["
    "\u3005-\u3007"  # marks that stand for a Han character
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"  # Han
    "]"
)


@lru_cache(maxsize=256)  # several metrics read the same texts, at about the same time
def normalize_answer(text: str) -> str:
    """A text without differences that should not decide whether an answer is right, its words joined by single spaces.

    In lower case, without punctuation (ASCII symbols such as `$` and `+` count as punctuation, other scripts' symbols
    do not), English articles and surplus white space. Accents are composed (NFC), never removed. Can be empty.
    """
    lowered = text.lower() if text.isascii() else unicodedata.normalize("NFC", text.lower())
    words = lowered.translate(_WITHOUT_ASCII_PUNCTUATION)
    if not words.isascii():
        words = "".join(character for character in words if not unicodedata.category(character).startswith("P"))
    return " ".join(_ARTICLES.sub(" ", words).split())


def tokenize_answer(text: str) -> list[str]:
    """The words of a normalised text; Han characters and kana each count as a word."""
    return split_squad_words(normalize_answer(text))


def split_squad_words(text: str) -> list[str]:
    """The words of a text, as white space separates them; Han characters and kana each count as a word."""
    return (text if text.isascii() else _WITHOUT_SPACES.sub(lambda match: f" {match.group()} ", text)).split()


def exact_match(answer: str, references: Sequence[str]) -> bool:
    """Whether an answer equals one of the references, at least one, once both are normalised; empty texts are equal."""
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
    return 2 * common / (answer.total() + reference.total())  # 2PR / (P + R) in whole numbers, rounded once


def _require(references: Sequence[str]) -> None:
    if not references:
        raise ValueError("an answer needs at least one reference to be compared with")


def compare_meanings(
    model: EmbeddingModel[Any], pairs: Sequence[tuple[str, str]], role: Role
) -> tuple[list[float | Failed], tuple[AnyNote, ...]]:
    """The cosine of the embeddings of each pair of texts, in [-1, 1]; `Failed` if a text has a vector of zeros.

    The distinct texts are embedded at once. A note says what cosines mean with a model that is not MiniLM.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not texts:
        return [], ()
    embeddings = model.embed(texts, role)
    vectors, place = embeddings.vectors, {text: index for index, text in enumerate(texts)}
    without_direction = ~np.any(vectors, axis=1)
    lost = [next((text for text in pair if without_direction[place[text]]), None) for pair in pairs]
    whole = [pair for pair, text in zip(pairs, lost, strict=True) if text is None]
    first, second = (vectors[[place[pair[side]] for pair in whole]] for side in (0, 1))
    cosines = iter(kernels.cosine_rows(first, second).tolist() if whole else ())
    values = [
        next(cosines) if text is None else Failed(f"{model.context.name} gives a vector of zeros for {text[:80]!r}")
        for text in lost
    ]
    notes = note_truncated_texts(texts, embeddings.truncated.tolist(), model.context.name)
    return values, (*notes, *explain_values(model, role))
