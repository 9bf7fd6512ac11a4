"""Computes answers that are not stored yet, once per distinct text, and stores each the moment it arrives.

An answer is stored under the digest of its question: a byte, 1 if the text was cut; the little-endian float32 vector;
and the CRC-32 of both.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from rageval_spec.errors import DataError
from rageval_spec.plugin import Embeddings, Model, PairScores

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Pair = tuple[str, str]

Q = TypeVar("Q")

LOOKED_UP_AT_ONCE = 4096
_WEIGHTS = frozenset({".onnx", ".safetensors", ".bin", ".onnx_data", ".pt"})
_PAUSE = 0.05
"""Seconds between checks whether another process has answered."""
_VECTOR = np.dtype("<f4")
_CHECKSUM = 4


class Batch(NamedTuple):
    """Answers to some of the questions, in the order in which they were fastest to compute.

    `positions` [n] are indexes into the questions that were asked, `vectors` [n, dimension] float32, `truncated` [n].
    """

    positions: NDArray[np.intp]
    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]


def embed_texts(
    model: Model[Any], texts: Sequence[str], compute: Callable[[Sequence[str]], Iterator[Batch]], *, task: str = "embed"
) -> Embeddings:
    """Vectors of texts, in their order; `compute` gets the distinct texts without a stored answer.

    `texts` are what the model reads, prefixes included. If a vector depends on more than the text, such as its role,
    `task` says on what: answers to different tasks are stored separately.

    Raises:
        DataError: the model gives a vector with NaN or infinity, or vectors of several dimensions.
    """
    with model.lock:
        return Embeddings(*_Answering(model, task, texts, compute).collect())


def score_pairs(
    model: Model[Any], pairs: Sequence[Pair], compute: Callable[[Sequence[Pair]], Iterator[Batch]]
) -> PairScores:
    """Logits of pairs, in their order; otherwise like `embed_texts`."""
    with model.lock:
        return PairScores(*_Answering(model, "score", pairs, compute, unit="pairs").collect())


class _Answering:
    """One call. Distinct questions are numbered in the order of their first occurrence.

    Each is answered at its first place and the other places are filled in at the end, so there is only one array.
    """

    def __init__(
        self,
        model: Model[Any],
        task: str,
        questions: Sequence[Any],
        compute: Callable[[Sequence[Any]], Iterator[Batch]],
        unit: str | None = None,
    ) -> None:
        self._unit = unit
        self._context = model.context
        self._inputs = model.inputs
        self._compute = compute
        self._questions = questions
        numbers: dict[bytes, int] = {}
        digests = (_digest(task, question) for question in questions)
        self._number_of = np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], np.intp)
        self._digests = list(numbers)
        self._first = np.unique(self._number_of, return_index=True)[1]
        self._key = model.key if self._digests else ""
        self._vectors = np.empty((0, 0), np.float32)
        self._truncated = np.zeros(len(questions), np.bool_)
        self._done = 0
        self._reused = 0

    def collect(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
        """The vector and the flag of each question, and how many distinct questions had a stored answer."""
        waiting = self._find(range(len(self._digests)))
        self._reused = self._done
        if waiting:
            with self._claim() as has_waited:
                self._compute_missing(self._find(waiting) if has_waited else waiting)
        if self._done != len(self._digests):
            missing = len(self._digests) - self._done
            raise DataError(
                f"models.{self._context.name}: no answer for {missing} of {len(self._digests)} {self._unit or 'texts'}"
            )
        self._repeat()
        return self._vectors, self._truncated, self._reused

    def _compute_missing(self, waiting: Sequence[int]) -> None:
        places = np.array(waiting, np.intp)
        if len(places):
            for batch in self._compute([self._questions[place] for place in self._first[places]]):
                self._take(batch, places[batch.positions])

    @contextmanager
    def _claim(self) -> Iterator[bool]:
        """Claim the questions; gives whether this waited for another process that answers the same questions."""
        answers, everything = self._context.answers, hashlib.sha256(b"".join(self._digests)).digest()
        has_waited = False
        while not answers.claim(self._key, everything):
            has_waited = True
            time.sleep(_PAUSE)
        try:
            yield has_waited
        finally:
            answers.release(self._key, everything)

    def _repeat(self) -> None:
        """Copy the answer of the first of equal questions to the others."""
        source = self._first[self._number_of]
        repeated = np.flatnonzero(source != np.arange(len(source)))
        if len(repeated):
            self._vectors[repeated] = self._vectors[source[repeated]]
            self._truncated[repeated] = self._truncated[source[repeated]]

    def _find(self, wanted: Sequence[int]) -> list[int]:
        """Take the stored answers to the questions with these numbers; return the numbers of the others."""
        waiting: list[int] = []
        for start in range(0, len(wanted), LOOKED_UP_AT_ONCE):
            numbers = wanted[start : start + LOOKED_UP_AT_ONCE]
            digests = [self._digests[number] for number in numbers]
            found = self._context.answers.find(self._key, digests)
            for number, digest in zip(numbers, digests, strict=True):
                if not self._restore(number, found.get(digest)):
                    waiting.append(number)
            self._report()
        return waiting

    def _restore(self, number: int, answer: bytes | None) -> bool:
        if answer is None or (found := _unpack(answer)) is None:
            return False
        vector, truncated = found
        if self._done == 0:
            self._allocate(len(vector))
        if len(vector) != self._vectors.shape[1]:
            return False
        place = self._first[number]
        self._vectors[place] = vector
        self._truncated[place] = truncated
        self._done += 1
        return True

    def _take(self, batch: Batch, numbers: NDArray[np.intp]) -> None:
        if self._done == 0:
            self._allocate(batch.vectors.shape[1])
        places = self._first[numbers]
        self._check(batch, places)
        self._vectors[places] = batch.vectors
        self._truncated[places] = batch.truncated
        content = batch.vectors.astype(_VECTOR, copy=False)
        self._context.answers.keep(
            self._key,
            {
                self._digests[number]: _pack(vector, bool(truncated))
                for number, vector, truncated in zip(numbers, content, batch.truncated, strict=True)
            },
        )
        self._done += len(numbers)
        self._report()

    def _check(self, batch: Batch, places: NDArray[np.intp]) -> None:
        where = f"models.{self._context.name}"
        dimension = self._vectors.shape[1]
        if batch.vectors.shape[1] != dimension:
            message = f"{where}: gives vectors of {batch.vectors.shape[1]} and of {dimension} values"
            if self._reused:
                message += f"; those of {dimension} are from the store: another model may now have this name; choose "
                message += "another folder with --store, or use --no-store"
            raise DataError(message)
        finite = np.isfinite(batch.vectors).all(axis=1)
        if not finite.all():
            text = json.dumps(self._questions[places[int(np.argmin(finite))]], ensure_ascii=False)
            shown = text if len(text) < 80 else text[:77] + "..."
            raise DataError(f"{where}: gives NaN or infinity for {shown}{self._blame_weights()}")

    def _blame_weights(self) -> str:
        """A hint that names the weights' files, if every text failed: damaged weights give NaN for all texts."""
        files = [file.path for file in self._inputs() if file.path.suffix in _WEIGHTS]
        if not files:
            return ""
        return f"; the weights in {', '.join(map(str, files))} may be damaged: download the model again"

    def _allocate(self, dimension: int) -> None:
        self._vectors = np.empty((len(self._questions), dimension), np.float32)

    def _report(self) -> None:
        if self._digests:
            self._context.progress(self._done, len(self._digests), self._unit)


def _pack(vector: NDArray[np.float32], truncated: bool) -> bytes:
    content = bytes([truncated]) + vector.tobytes()
    return content + zlib.crc32(content).to_bytes(_CHECKSUM, "little")


def _unpack(answer: bytes) -> tuple[NDArray[np.float32], bool] | None:
    """The vector and the flag; None if the stored answer is damaged."""
    content, checksum = answer[:-_CHECKSUM], answer[-_CHECKSUM:]
    whole = len(content) > _VECTOR.itemsize and zlib.crc32(content).to_bytes(_CHECKSUM, "little") == checksum
    if not whole:
        return None
    return np.frombuffer(content, _VECTOR, offset=1), content[0] == 1


def _digest(task: str, question: str | Pair) -> bytes:
    texts = (question,) if isinstance(question, str) else question
    parts = [task.encode(), *(text.encode("utf-8", "surrogatepass") for text in texts)]
    content = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return hashlib.sha256(content).digest()
