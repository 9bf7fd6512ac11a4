"""Finds questions that ask the same as an earlier one, by their words and, with a model, by their meaning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.generation.phrasing import split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.plugin import EmbeddingModel

LENGTH = 4
"""Characters of a shingle."""
SHINGLES = 0.8
"""The least share of shingles that two questions with the same meaning have in common (Jaccard)."""
_TELLING = 4
"""Letters of the shortest word that tells two questions apart."""
_ALIKE = 75
"""The least likeness of two spellings of one word, of 100."""
COSINE = 0.95
"""The least cosine of the embeddings of two questions with the same meaning."""


class Duplicate(NamedTuple):
    """The number of an earlier question, and how alike the two are: `87% of the shingles` or `cosine 0.97`."""

    number: int
    likeness: str


class Questions:
    """Questions that were accepted, and whether another one would repeat one of them."""

    def __init__(self, model: EmbeddingModel[Any] | None = None) -> None:
        """Begin without questions; without a model, only words are compared."""
        self._model = model
        self._texts: list[str] = []
        self._shingles: list[frozenset[str]] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._vectors: list[NDArray[np.float32]] = []

    def __len__(self) -> int:
        """How many questions were accepted."""
        return len(self._shingles)

    def add(self, question: str) -> None:
        """Add a question, whose number is how many there were before."""
        shingles = cut_shingles(question)
        for shingle in shingles:
            self._places[shingle].append(len(self))
        self._texts.append(question)
        self._shingles.append(shingles)
        if self._model is not None:
            self._vectors.append(self._embed([question])[0])

    def find(self, question: str) -> Duplicate | None:
        """The first question that asks the same; None if there is none."""
        shingles = cut_shingles(question)
        shared = Counter(place for shingle in shingles for place in self._places.get(shingle, ()))
        for place, count in sorted(shared.items()):
            likeness = count / (len(shingles) + len(self._shingles[place]) - count)
            if likeness >= SHINGLES and not _differ(question, self._texts[place]):
                return Duplicate(place, f"{likeness:.0%} of the shingles")
        return self._find_by_meaning(question)

    def _find_by_meaning(self, question: str) -> Duplicate | None:
        import numpy as np

        if self._model is None or not self._vectors:
            return None
        cosines = np.stack(self._vectors) @ self._embed([question])[0]
        near = np.flatnonzero(cosines >= COSINE)
        return Duplicate(int(near[0]), f"cosine {cosines[near[0]]:.2f}") if len(near) else None

    def _embed(self, questions: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        assert self._model is not None, "only called with a model"
        vectors = self._model.embed(questions, "query").vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float32)


def _differ(first: str, second: str) -> bool:
    """Whether each question has a telling word that the other one lacks, as if one asks about shoes and one about hats.

    Words that are spelled nearly alike are the same, unless they have digits.
    """
    words, others = split_words(first), split_words(second)
    return _has_own(words, others) and _has_own(others, words)


def _has_own(words: Sequence[str], others: Sequence[str]) -> bool:
    return any(word not in others and not _is_spelled_alike(word, others) for word in words if _is_telling(word))


def _is_telling(word: str) -> bool:
    return len(word) >= _TELLING or any(letter.isdigit() for letter in word)


def _is_spelled_alike(word: str, others: Sequence[str]) -> bool:
    from rapidfuzz.fuzz import ratio

    if any(letter.isdigit() for letter in word):
        return False
    return any(ratio(word, other) >= _ALIKE for other in others)


def cut_shingles(text: str) -> frozenset[str]:
    """The sequences of four characters in a text, without case and marks."""
    words = f" {' '.join(split_words(text))} "
    return frozenset(words[at : at + LENGTH] for at in range(max(1, len(words) - LENGTH + 1)))
