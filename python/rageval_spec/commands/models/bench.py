"""`rageval-spec models bench`: the speed and memory of a model's forms, and how well their vectors agree."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec import registry
from rageval_spec.commands.models.measured import MEASURE, REFERENCE, Agreement, Bench, Measured
from rageval_spec.commands.models.named import Named, find_model
from rageval_spec.commands.models.texts import choose_texts
from rageval_spec.commands.models.trial import Contender, Trial
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, Role
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.commands.models.trial import Outcome
    from rageval_spec.data.tables import Collection

TORCH = "sentence_transformers"
_WARM_UP = 16


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure: a model, on `count` texts from a file or a BEIR folder (None: built-in ones), `rounds` times."""

    model: str
    texts: Path | None = None
    count: int = 500
    rounds: int = 3
    threads: int | None = None
    revision: str | None = None
    file: str | None = None


def bench(request: Request) -> Bench:
    """Measure fp32, int8 and, if it is installed, sentence-transformers, each in its own process.

    The rounds are interleaved, so that other load on the machine affects all forms alike.

    Raises:
        UsageError: there is no such model, or it is not an embedding model.
        DataError: the texts or the model's files cannot be used.
        RagevalError: the model cannot be downloaded or run.
    """
    from rageval_spec.inference.session import count_cores

    named = find_model(request.model, request.revision, request.file)
    if named.configuration.task == "classification":
        raise UsageError(f"'{request.model}' is a cross-encoder; models bench measures only embedding models")
    collection = _open_collection(request.texts)
    texts = choose_texts(request.texts, request.count, collection)
    tokens, truncated = _count_tokens(named, texts)
    remarks: list[str] = []
    with ProgressDisplay() as display, ExitStack() as processes:
        trials = list(_start(request, named, texts, processes, display, remarks))
        measured = _measure(trials, texts, request.rounds, display)
        quality = {} if collection is None else _rank(trials, request, named, collection, display)
    return Bench(
        request.model,
        len(texts),
        tokens,
        truncated,
        request.threads or count_cores(),
        request.rounds,
        measured,
        None if collection is None else collection.name,
        quality,
        tuple(remarks),
    )


def _start(
    request: Request,
    named: Named,
    texts: Sequence[str],
    processes: ExitStack,
    display: ProgressDisplay,
    remarks: list[str],
) -> Iterator[Trial]:
    """The forms that run, already built and loaded. The reference must run."""
    for contender in _list_contenders(request, named):
        display.announce(f"load {contender.name}")
        trial = processes.enter_context(Trial(contender))
        try:
            trial.embed(texts[:_WARM_UP])
        except RagevalError as error:
            if contender.name == REFERENCE:
                raise
            remarks.append(f"{contender.name} was not measured: {error}")
        else:
            yield trial


def _list_contenders(request: Request, named: Named) -> Iterator[Contender]:
    place = {"model": request.model, "revision": named.source.location.revision or request.revision}
    for precision in (REFERENCE, "int8"):
        node = {"use": "onnx", **place, "file": request.file, "precision": precision}
        yield Contender(precision, node, Path(), request.threads)
    if importlib.util.find_spec(TORCH) and any(named.source.folder.glob("*.safetensors")):
        yield Contender(TORCH, {"use": TORCH, **place, "device": "cpu"}, Path(), request.threads)


def _measure(trials: list[Trial], texts: Sequence[str], rounds: int, display: ProgressDisplay) -> tuple[Measured, ...]:
    outcomes: dict[str, list[Outcome]] = {trial.name: [] for trial in trials}
    display.announce(f"embed {count_noun(len(texts), 'text')} in {count_noun(rounds, 'round')}")
    for number in range(rounds):
        for trial in trials[number % len(trials) :] + trials[: number % len(trials)]:
            label = f"{trial.name}, round {number + 1} of {rounds}"
            outcomes[trial.name].append(trial.embed(texts, progress=display.counting(label)))
    reference = outcomes[REFERENCE][-1].embeddings.vectors
    return tuple(
        Measured(
            name,
            tuple(outcome.seconds for outcome in found),
            max(outcome.peak_bytes for outcome in found),
            None if name == REFERENCE else _compare(found[-1].embeddings.vectors, reference),
        )
        for name, found in outcomes.items()
    )


def _compare(vectors: NDArray[np.float32], reference: NDArray[np.float32]) -> Agreement:
    import numpy as np

    first, second = vectors.astype(np.float64), reference.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = (first * second).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)
    return Agreement(float(cosines.mean()), float(cosines.min()))


def _rank(
    trials: Sequence[Trial], request: Request, named: Named, collection: Collection, display: ProgressDisplay
) -> dict[str, float]:
    """nDCG@10 of exact search with fp32 and with int8, over the whole folder."""
    from rageval_spec.api.ranking import evaluate

    dense = registry.load("systems", "dense")
    quality: dict[str, float] = {}
    display.announce(f"search {collection.name}")
    for trial in trials:
        if trial.name != TORCH:
            model = _Tried(trial, request, named, display)
            node = dense.node_type(use="dense", model=trial.name, depth=100)
            system = dense(node, Context(trial.name, threads=request.threads, models={trial.name: model}))
            run = system.retrieve(collection, {}).run
            results = evaluate(_judgements(collection), run, [MEASURE], missing="zero", drop_self=True)
            quality[trial.name] = results[MEASURE]
    return quality


class _Tried(EmbeddingModel[Any]):
    """A model that runs in another process."""

    def __init__(self, trial: Trial, request: Request, named: Named, display: ProgressDisplay) -> None:
        onnx = registry.load("models", "onnx")
        node = onnx.node_type(use="onnx", model=request.model)
        super().__init__(node, Context(trial.name))
        self._trial = trial
        self._similarity = named.configuration.similarity
        self._display = display

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return self._similarity

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        plural = "queries" if role == "query" else "documents"
        return self._trial.embed(texts, role, self._display.counting(f"{self._trial.name}, {plural}")).embeddings


def _open_collection(path: Path | None) -> Collection | None:
    """The BEIR folder with only its judged queries; None if the path is not a folder."""
    from rageval_spec.data.tables import only_queries

    if path is None or not path.is_dir():
        return None
    beir = registry.load("datasets", "beir")
    collection: Collection = beir(beir.node_type(use="beir", path=str(path.resolve())), Context(path.name)).open()
    judged = _judgements(collection)
    queries = collection.require("queries", "models bench")
    return replace(collection, load_queries=lambda: only_queries(queries, judged))


def _judgements(collection: Collection) -> Any:
    if collection.qrels is None:
        raise DataError(f"the dataset '{collection.name}' has no qrels")
    return collection.qrels


def _count_tokens(named: Named, texts: Sequence[str]) -> tuple[int, int]:
    """How many tokens the model reads, and how many texts it truncates."""
    from rageval_spec.inference.tokens import load_tokenizer

    source, configuration = named.source, named.configuration
    tokenizer = load_tokenizer(
        source.folder, source.tokenizer, max_length=configuration.max_length, lowercase=configuration.lowercase
    )
    tokens = tokenizer.read([configuration.document_prefix + text for text in texts])
    return sum(map(len, tokens.ids)), int(tokens.truncated.sum())
