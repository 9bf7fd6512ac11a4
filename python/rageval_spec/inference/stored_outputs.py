"""Computes answers that are not stored yet, once per distinct text, and stores each the moment it arrives.

The vectors of corpora are stored in files of their own (`store/vectors.py`). Any other answer is stored under the
digest of its question: a byte, 1 if the text was cut; the content; and the CRC-32 of both. The content is a
little-endian float32 vector. For tokens it is the number of labels as a little-endian uint32, then for each token its
two offsets as int32, then for each token its logits as float32.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from rageval_spec.errors import DataError
from rageval_spec.plugin import EmbeddingModel, Embeddings, Model, PairScores, Role, TokenTags
from rageval_spec.store.vectors import MISSING, UnusableVectorError, VectorFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pair = tuple[str, str]

B = TypeVar("B", "Batch", "TagBatch")

LOOKED_UP_AT_ONCE = 4096
_WEIGHTS = frozenset({".onnx", ".safetensors", ".bin", ".onnx_data", ".pt"})
_PAUSE = 0.05
"""Seconds between checks whether another process has answered."""
_VECTOR = np.dtype("<f4")
_OFFSET = np.dtype("<i4")
_LABELS = np.dtype("<u4")
_CHECKSUM = 4


class Batch(NamedTuple):
    """Answers to some of the questions, in the order in which they were fastest to compute.

    `positions` [n] are indexes into the questions that were asked, `vectors` [n, dimension] float32, `truncated` [n].
    """

    positions: NDArray[np.intp]
    vectors: NDArray[np.float32]
    truncated: NDArray[np.bool_]


class TagBatch(NamedTuple):
    """As `Batch`, for the tokens of the second texts of pairs.

    For each pair, `offsets` are int64 [tokens, 2] and `logits` float32 [tokens, labels].
    """

    positions: NDArray[np.intp]
    offsets: Sequence[NDArray[np.int64]]
    logits: Sequence[NDArray[np.float32]]
    truncated: NDArray[np.bool_]


def embed_texts(
    model: Model[Any], texts: Sequence[str], compute: Callable[[Sequence[str]], Iterator[Batch]], *, task: str = "embed"
) -> Embeddings:
    """Vectors of texts, in their order; `compute` gets the distinct texts without a stored answer.

    `texts` are what the model reads, prefixes included. If a vector depends on more than the text, such as its role,
    `task` says on what: answers to different tasks are stored separately.
    """
    with model.lock:
        if (file := getattr(model, "file", None)) is not None:
            return _FiledVectors(model, task, texts, compute, file).store()
        return Embeddings(*_Vectors(model, task, texts, compute).collect())


def embed_into(
    model: EmbeddingModel[Any], texts: Sequence[str], role: Role, file: VectorFile, *, keeps_answers: bool = False
) -> Embeddings:
    """Like the model's `embed`, but the vectors are stored in a file as they are computed, and none is returned.

    The result names their rows. Texts whose vectors are in the file, or among the answers, are not computed again.
    With `keeps_answers`, vectors are stored among the answers, too, which outlive a file of this process.

    Raises:
        UnusableVectorError: a vector cannot be stored; it says which text's.
        RagevalError: as for `embed`, and if the file cannot be written.
    """
    with model.lock:
        model.file = None if keeps_answers else file
        try:
            found = model.embed(texts, role)
        finally:
            model.file = None
        if found.rows is not None:
            return found
        # They were stored as answers; or a plugin that stores nothing has computed all of them.
        digests = [_digest(f"embed {role}", text) for text in texts]
        with file.claimed():
            missing = np.flatnonzero(file.find(digests) == MISSING)
            places = sorted({digests[place]: place for place in missing[::-1].tolist()}.values())
            if places:
                _append(file, places, [digests[place] for place in places], found.vectors[places], found.truncated)
        return replace(found, rows=file.find(digests))


def score_pairs(
    model: Model[Any], pairs: Sequence[Pair], compute: Callable[[Sequence[Pair]], Iterator[Batch]]
) -> PairScores:
    """Logits of pairs, in their order; otherwise like `embed_texts`."""
    with model.lock:
        return PairScores(*_Vectors(model, "score", pairs, compute, unit="pairs").collect())


def tag_pairs(
    model: Model[Any], pairs: Sequence[Pair], compute: Callable[[Sequence[Pair]], Iterator[TagBatch]]
) -> TokenTags:
    """Logits of the tokens of the second texts of pairs, in the order of the pairs; otherwise like `embed_texts`."""
    with model.lock:
        return _Tags(model, "tag", pairs, compute, unit="pairs").collect()


def foresee_reading(model: Model[Any], task: str, questions: Sequence[str | Pair]) -> dict[str, str | Pair]:
    """The distinct questions without a stored answer, by their digest in hex. Computes nothing."""
    asked = {_digest(task, question): question for question in questions}
    digests = list(asked)
    for start in range(0, len(digests), LOOKED_UP_AT_ONCE):
        for digest in model.context.answers.find(model.key, digests[start : start + LOOKED_UP_AT_ONCE]):
            del asked[digest]
    return {digest.hex(): question for digest, question in asked.items()}


class _Answering(Generic[B]):
    """One call. Distinct questions are numbered in the order of their first occurrence.

    Each is answered at its first place and the other places are filled in at the end, so there is only one array.
    Subclasses hold the answers.
    """

    def __init__(
        self,
        model: Model[Any],
        task: str,
        questions: Sequence[Any],
        compute: Callable[[Sequence[Any]], Iterator[B]],
        unit: str | None = None,
    ) -> None:
        self._unit = unit
        self._context = model.context
        self._inputs = model.inputs
        self._compute: Callable[[Sequence[Any]], Iterator[B]] = compute
        self._questions = questions
        numbers: dict[bytes, int] = {}
        digests = (_digest(task, question) for question in questions)
        self._number_of = np.array([numbers.setdefault(digest, len(numbers)) for digest in digests], np.intp)
        self._digests = list(numbers)
        self._first = np.unique(self._number_of, return_index=True)[1]
        self._key = model.key if self._digests else ""
        self._truncated = np.zeros(len(questions), np.bool_)
        self._done = 0
        self._reused = 0

    def _answer(self) -> None:
        """Answer all questions: from the store, else by computing."""
        waiting = self._find(range(len(self._digests)))
        self._reused = self._done
        if waiting:
            with self._claim() as has_waited:
                places = np.array(self._find(waiting) if has_waited else waiting, np.intp)
                asked = [self._questions[place] for place in self._first[places]]
                for batch in self._compute(asked) if asked else ():
                    self._take(batch, places[batch.positions])
        if self._done != len(self._digests):
            missing = len(self._digests) - self._done
            raise DataError(
                f"models.{self._context.name}: no answer for {missing} of {len(self._digests)} {self._unit or 'texts'}"
            )
        source = self._first[self._number_of]
        repeated = np.flatnonzero(source != np.arange(len(source)))
        self._truncated[repeated] = self._truncated[source[repeated]]
        self._repeat(source, repeated)

    @abstractmethod
    def _unpack(self, place: int, content: memoryview) -> bool:
        """Take a stored answer; False if it is damaged."""

    @abstractmethod
    def _place(self, batch: B, places: NDArray[np.intp]) -> Iterable[bytes] | None:
        """Check and take computed answers; return them as they are stored, or None if they are stored already."""

    @abstractmethod
    def _repeat(self, source: NDArray[np.intp], repeated: NDArray[np.intp]) -> None:
        """Copy the answers at `source[repeated]` to the places `repeated`."""

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
        if answer is None or (content := _unpack(answer)) is None:
            return False
        place = int(self._first[number])
        if not self._unpack(place, content[1:]):
            return False
        self._truncated[place] = content[0] == 1
        self._done += 1
        return True

    def _take(self, batch: B, numbers: NDArray[np.intp]) -> None:
        places = self._first[numbers]
        contents = self._place(batch, places)
        self._truncated[places] = batch.truncated
        if contents is not None:
            self._context.answers.keep(
                self._key,
                {
                    self._digests[number]: _pack(bytes([bool(truncated)]) + content)
                    for number, content, truncated in zip(numbers, contents, batch.truncated, strict=True)
                },
            )
        self._done += len(numbers)
        self._report()

    def _refuse_width(self, what: str, found: int, width: int) -> None:
        """Refuse answers of another width than earlier ones."""
        if found == width:
            return
        message = f"models.{self._context.name}: gives {what} of {found} and of {width} values"
        if self._reused:
            message += f"; those of {width} are from the store: another model may now have this name; choose "
            message += "another folder with --store, or use --no-store"
        raise DataError(message)

    def _refuse_infinite(self, finite: NDArray[np.bool_], places: NDArray[np.intp]) -> None:
        """Refuse answers [n] that are not finite, and name the first one's question."""
        if not finite.all():
            text = json.dumps(self._questions[places[int(np.argmin(finite))]], ensure_ascii=False)
            shown = text if len(text) < 80 else text[:77] + "..."
            raise DataError(f"models.{self._context.name}: gives NaN or infinity for {shown}{self._blame_weights()}")

    def _blame_weights(self) -> str:
        """A hint that names the weights' files, if every text failed: damaged weights give NaN for all texts."""
        files = [file.path for file in self._inputs() if file.path.suffix in _WEIGHTS]
        if not files:
            return ""
        return f"; the weights in {', '.join(map(str, files))} may be damaged: download the model again"

    def _report(self) -> None:
        if self._digests:
            self._context.progress(self._done, len(self._digests), self._unit)


class _Vectors(_Answering[Batch]):
    """Vectors of one width."""

    def collect(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
        self._vectors = np.empty((0, 0), np.float32)
        self._answer()
        return self._vectors, self._truncated, self._reused

    def _unpack(self, place: int, content: memoryview) -> bool:
        if not content or len(content) % _VECTOR.itemsize:
            return False
        vector = np.frombuffer(content, _VECTOR)
        self._allocate(len(vector))
        if len(vector) != self._vectors.shape[1]:
            return False
        self._vectors[place] = vector
        return True

    def _place(self, batch: Batch, places: NDArray[np.intp]) -> Iterable[bytes]:
        self._allocate(batch.vectors.shape[1])
        self._refuse_width("vectors", batch.vectors.shape[1], self._vectors.shape[1])
        self._refuse_infinite(np.array(np.isfinite(batch.vectors).all(axis=1)), places)
        self._vectors[places] = batch.vectors
        return (vector.tobytes() for vector in batch.vectors.astype(_VECTOR, copy=False))

    def _allocate(self, dimension: int) -> None:
        if self._done == 0:
            self._vectors = np.empty((len(self._questions), dimension), np.float32)

    def _repeat(self, source: NDArray[np.intp], repeated: NDArray[np.intp]) -> None:
        if len(repeated):
            self._vectors[repeated] = self._vectors[source[repeated]]


class _FiledVectors(_Answering[Batch]):
    """Vectors in a file. Those that an earlier version stored among the answers are copied into it."""

    def __init__(
        self,
        model: Model[Any],
        task: str,
        questions: Sequence[str],
        compute: Callable[[Sequence[Any]], Iterator[Batch]],
        file: VectorFile,
    ) -> None:
        super().__init__(model, task, questions, compute)
        self._file = file
        self._rows = np.full(len(questions), MISSING, np.int64)
        self._restored: dict[int, NDArray[np.float32]] = {}

    def store(self) -> Embeddings:
        self._answer()
        return Embeddings(np.empty((0, 0), np.float32), self._truncated, self._reused, self._rows)

    @contextmanager
    def _claim(self) -> Iterator[bool]:
        with self._file.claimed():
            yield True

    def _find(self, wanted: Sequence[int]) -> list[int]:
        numbers = np.array(wanted, np.intp)
        rows = self._file.find([self._digests[number] for number in wanted])
        found = rows != MISSING
        places = self._first[numbers[found]]
        self._rows[places], self._truncated[places] = rows[found], self._file.is_cut(rows[found])
        self._done += len(places)
        self._report()
        waiting: list[int] = numbers[~found].tolist()
        if not waiting or self._file.is_claimed or not self._context.answers.has_any(self._key):
            return waiting
        waiting = super()._find(waiting)
        if self._restored:
            with self._file.claimed():
                self._store(list(self._restored), np.stack(list(self._restored.values())))
        return waiting

    def _unpack(self, place: int, content: memoryview) -> bool:
        if not content or len(content) % _VECTOR.itemsize:
            return False
        self._restored[place] = np.frombuffer(content, _VECTOR)
        return True

    def _place(self, batch: Batch, places: NDArray[np.intp]) -> None:
        self._refuse_width("vectors", batch.vectors.shape[1], self._file.dimension or batch.vectors.shape[1])
        self._refuse_infinite(np.array(np.isfinite(batch.vectors).all(axis=1)), places)
        self._truncated[places] = batch.truncated
        self._store(places.tolist(), batch.vectors)

    def _store(self, places: list[int], vectors: NDArray[np.float32]) -> None:
        digests = [self._digests[number] for number in self._number_of[places]]
        self._rows[places] = _append(self._file, places, digests, vectors, self._truncated)

    def _repeat(self, source: NDArray[np.intp], repeated: NDArray[np.intp]) -> None:
        self._rows[repeated] = self._rows[source[repeated]]


def _append(
    file: VectorFile,
    places: Sequence[int],
    digests: Sequence[bytes],
    vectors: NDArray[np.float32],
    truncated: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Store the vectors of the texts at `places`, of which an error names the one at fault."""
    try:
        return file.append(digests, vectors, truncated[list(places)])
    except UnusableVectorError as error:
        raise UnusableVectorError(places[error.row], error.complaint) from error


class _Tags(_Answering[TagBatch]):
    """Offsets and logits of tokens, of which each pair has its own number."""

    def collect(self) -> TokenTags:
        self._labels = 0
        self._offsets = [np.empty((0, 2), np.int64)] * len(self._questions)
        self._logits = [np.empty((0, 0), np.float32)] * len(self._questions)
        self._answer()
        return TokenTags(self._offsets, self._logits, self._truncated, self._reused)

    def _unpack(self, place: int, content: memoryview) -> bool:
        if len(content) < _LABELS.itemsize:
            return False
        labels = int(np.frombuffer(content, _LABELS, 1)[0])
        tokens, left = divmod(len(content) - _LABELS.itemsize, 2 * _OFFSET.itemsize + labels * _VECTOR.itemsize)
        if left or not labels or labels != (self._labels or labels):
            return False
        self._labels = labels
        offsets = np.frombuffer(content, _OFFSET, 2 * tokens, _LABELS.itemsize)
        logits = np.frombuffer(content, _VECTOR, labels * tokens, _LABELS.itemsize + offsets.nbytes)
        self._offsets[place] = offsets.reshape(tokens, 2).astype(np.int64)
        self._logits[place] = logits.reshape(tokens, labels).astype(np.float32)
        return True

    def _place(self, batch: TagBatch, places: NDArray[np.intp]) -> Iterable[bytes]:
        for logits in batch.logits:
            self._labels = self._labels or logits.shape[1]
            self._refuse_width("logits", logits.shape[1], self._labels)
        self._refuse_infinite(np.array([np.isfinite(logits).all() for logits in batch.logits], np.bool_), places)
        for place, offsets, logits in zip(places, batch.offsets, batch.logits, strict=True):
            self._offsets[place], self._logits[place] = offsets, logits
        return map(_pack_tags, batch.offsets, batch.logits)

    def _repeat(self, source: NDArray[np.intp], repeated: NDArray[np.intp]) -> None:
        for place in repeated:
            self._offsets[place], self._logits[place] = self._offsets[source[place]], self._logits[source[place]]


def _pack_tags(offsets: NDArray[np.int64], logits: NDArray[np.float32]) -> bytes:
    labels = np.array(logits.shape[1], _LABELS)
    return labels.tobytes() + offsets.astype(_OFFSET).tobytes() + logits.astype(_VECTOR).tobytes()


def _pack(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(_CHECKSUM, "little")


def _unpack(answer: bytes) -> memoryview | None:
    """The flag and the content; None if the stored answer is damaged."""
    content, checksum = memoryview(answer)[:-_CHECKSUM], answer[-_CHECKSUM:]
    whole = len(content) > 1 and zlib.crc32(content).to_bytes(_CHECKSUM, "little") == checksum
    return content if whole else None


def _digest(task: str, question: str | Pair) -> bytes:
    texts = (question,) if isinstance(question, str) else question
    parts = [task.encode(), *(text.encode("utf-8", "surrogatepass") for text in texts)]
    content = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return hashlib.sha256(content).digest()
