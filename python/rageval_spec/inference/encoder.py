"""Runs a loaded model: from texts to tokens, through the graph, to vectors, logits, or the logits of tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from onnx_from_checkpoints import read_weights
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.model_files import ModelFiles, translated
from rageval_spec.inference.stored_outputs import Batch, TagBatch
from rageval_spec.inference.tokens import Locator, Text, Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from onnx_from_checkpoints import Configuration, DenseLayer, Task
    from rageval_spec.inference.session import Session

    Vector = NDArray[np.float32]
    Vectors = NDArray[np.float32]

TOKENISED_AT_ONCE = 16_384
"""The number of texts whose tokens are in memory at a time, and that are sorted by length together."""
TAGGED_AT_ONCE = 256
"""As `TOKENISED_AT_ONCE`, for pairs whose tokens are labelled, because these have thousands of tokens each."""
KEPT_AT_ONCE = 256
KEPT_EVERY = 2.0
"""Vectors are passed on after this many texts or seconds, which limits how much a killed process loses."""
_SMALLEST = 1e-12
"""Vectors shorter than this are divided by it, not by their length, as in PyTorch's `normalize`."""


class TokenCounter:
    """Counts tokens as a model does, without its graph."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def room(self) -> int | None:
        """The most tokens of a pair, without special tokens; None if there is no bound."""
        return self._locator.room

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, without special tokens; nothing is cut."""
        return self._locator.count(texts)

    def count_in_pairs(self, documents: Sequence[str]) -> list[int]:
        """How many tokens each text adds to a pair as its document, at most as many as the model reads."""
        none, *counts = (len(ids) for ids in self._tokenizer.read([("", ""), *((one, "") for one in documents)]).ids)
        return [count - none for count in counts]

    def count_around(self) -> int:
        """How many tokens a pair of empty texts has: special tokens and those of a template."""
        return len(self._tokenizer.read([("", "")]).ids[0])

    @property
    def _locator(self) -> Locator:
        if not isinstance(self._tokenizer, Locator):
            raise UsageError(
                "only transformers can read the model's tokenizer, and it does not report the characters of a "
                "token; use a copy of the model with a tokenizer.json"
            )
        return self._tokenizer


class Encoder(TokenCounter):
    """Computes vectors of texts, logits of pairs, or logits of the tokens of pairs."""

    def __init__(
        self, tokenizer: Tokenizer, session: Session, finish: Callable[[Vectors], Vectors], token_types: bool = True
    ) -> None:
        super().__init__(tokenizer)
        self._token_types = token_types
        self._session = session
        self._finish = finish

    @property
    def task(self) -> Task:
        """The graph's task, according to its outputs."""
        return self._session.task

    @property
    def pools(self) -> bool:
        """Whether the graph itself outputs one vector per text, regardless of the configuration."""
        return self._session.pooled

    @property
    def width(self) -> int:
        """The number of values per text, or of logits per pair or token."""
        if self.task == "token_classification":
            labels: int = next(self.tag([("", "a")])).logits[0].shape[1]
            return labels
        text: Text = ("", "") if self.task == "classification" else ""
        width: int = next(self._compute([text])).vectors.shape[1]
        return width

    def embed(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Vectors of texts. In each block of some thousand the longest come first, so the threads end together."""
        return self._compute(texts)

    def score(self, pairs: Sequence[tuple[str, str]]) -> Iterator[Batch]:
        return self._compute(pairs)

    def tag(self, pairs: Sequence[tuple[str, str]]) -> Iterator[TagBatch]:
        """Logits of the tokens of each pair's second text that stand for characters, in the order of `embed`."""
        for start in range(0, len(pairs), TAGGED_AT_ONCE):
            tokens, places = self._locator.locate(pairs[start : start + TAGGED_AT_ONCE])
            for positions, logits in self._session.run(tokens.ids, tokens.type_ids if self._token_types else None):
                offsets = [places[position] for position in positions]
                stands = [each[:, 1] > each[:, 0] for each in offsets]
                yield TagBatch(
                    positions + start,
                    [each[kept] for each, kept in zip(offsets, stands, strict=True)],
                    [each[kept] for each, kept in zip(self._finish(logits), stands, strict=True)],
                    tokens.truncated[positions],
                )

    def _compute(self, texts: Sequence[Text]) -> Iterator[Batch]:
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            tokens = self._tokenizer.read(texts[start : start + TOKENISED_AT_ONCE])
            answers = self._session.run(tokens.ids, tokens.type_ids if self._token_types else None)
            for positions, vectors in _collect(answers):
                yield Batch(positions + start, self._finish(vectors), tokens.truncated[positions])


def load_encoder(source: ModelFiles, configuration: Configuration, graph: Path, threads: int | None) -> Encoder:
    """Load the tokenizer and the graph of a model."""
    from rageval_spec.inference.session import Session

    tokenizer = load_model_tokenizer(source, configuration)
    session = Session(graph, configuration.pooling, task=configuration.task, threads=threads)
    if configuration.task not in (None, session.task):
        _refuse_task(source, graph, session, configuration.task)
    finish = _finish_vectors if session.task == "embedding" else _finish_logits
    return Encoder(tokenizer, session, finish(source, configuration, session), configuration.token_types)


def load_counter(source: ModelFiles, configuration: Configuration) -> TokenCounter:
    return TokenCounter(load_model_tokenizer(source, configuration))


def load_model_tokenizer(source: ModelFiles, configuration: Configuration) -> Tokenizer:
    """What reads texts, or pairs through a template, as the model was trained to."""
    return load_tokenizer(
        source.tokenizer_folder,
        source.tokenizer,
        configuration.pair_format,
        max_length=configuration.max_length,
        vocabulary=configuration.vocabulary,
        lowercase=configuration.lowercase,
    )


def _refuse_task(source: ModelFiles, graph: Path, session: Session, stated: Task) -> NoReturn:
    said: dict[Task, str] = {
        "embedding": "an encoder, which gives vectors",
        "classification": "a classifier, which gives logits",
        "token_classification": "a token classifier, which gives each token logits",
    }
    raise DataError(
        f"{graph}: is {said[session.task]}, but the files in {source.folder} describe {said[stated]}; "
        "export the graph again from the model that these files belong to"
    )


def _finish_logits(source: ModelFiles, configuration: Configuration, session: Session) -> Callable[[Vectors], Vectors]:  # noqa: ARG001 - as `_finish_vectors`
    labels = len(configuration.labels)

    def finish(logits: Vectors) -> Vectors:
        if labels and logits.shape[-1] != labels:
            where = source.path("config.json")
            raise DataError(f"{where}: names {labels} labels, but the model gives {logits.shape[-1]} logits")
        return logits

    return finish


def _finish_vectors(source: ModelFiles, configuration: Configuration, session: Session) -> Callable[[Vectors], Vectors]:
    """The steps after pooling. A graph that pools already includes the dense layers."""
    layers = [] if session.pooled else [_load_dense(source.folder, layer) for layer in configuration.dense]
    wanted = configuration.dimensions

    def finish(vectors: Vectors) -> Vectors:
        for layer in layers:
            vectors = np.stack([layer(vector) for vector in vectors])
        if wanted is not None and wanted > vectors.shape[1]:
            raise UsageError(
                f"dimensions: {wanted} is more than the {vectors.shape[1]} that {source.location.name} gives"
            )
        vectors = vectors[:, :wanted]
        return normalize(vectors) if configuration.normalize else vectors

    return finish


def normalize(vectors: Vectors) -> Vectors:
    """Scale rows to unit length; a row of zeros stays zero. The result for a row does not depend on other rows."""
    lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))
    divided: Vectors = (vectors / np.maximum(lengths, _SMALLEST)[:, None]).astype(np.float32)
    return divided


def _collect(
    answers: Iterator[tuple[NDArray[np.intp], Vectors]],
) -> Iterator[tuple[NDArray[np.intp], Vectors]]:
    """The same answers in larger batches: storing one costs about as much as storing a hundred."""
    positions: list[NDArray[np.intp]] = []
    vectors: list[Vectors] = []
    since = time.monotonic()
    for position, vector in answers:
        positions.append(position)
        vectors.append(vector)
        if sum(map(len, positions)) >= KEPT_AT_ONCE or time.monotonic() - since > KEPT_EVERY:
            yield np.concatenate(positions), np.concatenate(vectors)
            positions, vectors, since = [], [], time.monotonic()
    if positions:
        yield np.concatenate(positions), np.concatenate(vectors)


_ACTIVATIONS: dict[str, Callable[[Vectors], Vectors]] = {
    "Identity": lambda values: values,
    "Tanh": np.tanh,
    "ReLU": lambda values: np.maximum(values, 0),
    "Sigmoid": lambda values: np.reciprocal(1 + np.exp(-values)),
}


def _load_dense(folder: Path, layer: DenseLayer) -> Callable[[Vector], Vector]:
    """The layer as a function of one text's vector [in_features].

    One product over all texts would be faster, but its rounding would depend on which texts are computed together.
    """
    path = folder / layer.folder / "model.safetensors"
    with translated():
        layer.check(folder)
        weight, bias, through = _read_dense(path, layer)
    activate = _ACTIVATIONS[layer.activation]

    def apply(vector: Vector) -> Vector:
        if len(vector) != weight.shape[1]:
            raise DataError(f"{path}: needs vectors of {weight.shape[1]} values, but gets {len(vector)}")
        found = activate(_multiply(weight, vector) + bias).astype(np.float32, copy=False)
        if layer.residual:
            found = found + (vector if through is None else _multiply(through, vector))
        return found

    return apply


def _read_dense(path: Path, layer: DenseLayer) -> tuple[Vectors, Vector, Vectors | None]:
    """The weight and the bias, and the weight of the residual connection if it has one."""
    weights = read_weights([path])
    try:
        weight = weights["linear.weight"].astype(np.float32)
        bias = weights["linear.bias"].astype(np.float32) if layer.bias else np.zeros(len(weight), np.float32)
    except KeyError as error:
        raise DataError(f"{path}: has no {error}") from error
    return weight, bias, weights["residual.weight"].astype(np.float32) if "residual.weight" in weights else None


def _multiply(weight: Vectors, vector: Vector) -> Vector:
    """[outputs, inputs] times [inputs], summed by numpy: in a BLAS the order would depend on the number of threads."""
    product: Vector = (weight * vector).sum(axis=1)
    return product
