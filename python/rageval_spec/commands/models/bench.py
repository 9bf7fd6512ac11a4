"""`rageval-spec models bench`: the speed and memory of a model's forms, and how well their answers agree."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.front import Command
from rageval_spec.commands.models.job import Job, count_tokens, make_job
from rageval_spec.commands.models.measured import MEASURE, REFERENCE, Bench, Measured
from rageval_spec.commands.models.named import Named, find_model
from rageval_spec.commands.models.texts import choose_texts
from rageval_spec.errors import PASSED, DataError, RagevalError

if TYPE_CHECKING:
    from rageval_spec.commands.models.trial import Contender, Outcome, Trial
    from rageval_spec.data.tables import Collection
    from rageval_spec.progress import ProgressDisplay

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


def measure_forms(request: Request) -> Bench:
    """Measure fp32, int8 and, if it is installed, sentence-transformers, each in its own process.

    The rounds are interleaved, so that other load on the machine affects all forms alike.

    Raises:
        UsageError: there is no such model, or it cannot be run.
        DataError: the texts or the model's files cannot be used.
        RagevalError: the model cannot be downloaded or run.
    """
    from rageval_spec.inference.session import count_cores
    from rageval_spec.progress import ProgressDisplay

    named = find_model(request.model, request.revision, request.file)
    collection = _open_collection(request.texts)
    texts = choose_texts(request.texts, request.count, collection)
    job = make_job(named.configuration.task, texts)
    remarks: list[str] = []
    with ProgressDisplay() as display, ExitStack() as processes:
        trials = list(_start(request, named, job, processes, display, remarks))
        measured, truncated = _measure(trials, job, request.rounds, display)
        ranks = collection is not None and job.unit == "text"
        quality = _rank(trials, request, named, collection, display) if ranks and collection is not None else {}
    return Bench(
        request.model,
        len(job.content),
        count_tokens(named, request.revision, job),
        truncated,
        request.threads or count_cores(),
        request.rounds,
        measured,
        collection.name if collection is not None and ranks else None,
        quality,
        tuple(remarks),
        job.unit,
    )


def _start(
    request: Request, named: Named, job: Job, processes: ExitStack, display: ProgressDisplay, remarks: list[str]
) -> Iterator[Trial]:
    """The forms that run, already built and loaded. The reference must run."""
    from rageval_spec.commands.models.trial import Trial
    from rageval_spec.plugin import ignore_progress

    for contender in _list_contenders(request, named, job):
        display.announce(f"load {contender.name}")
        try:
            _build(contender, named)
            trial = processes.enter_context(Trial(contender))
            job.start(_WARM_UP).run(trial, ignore_progress)
        except RagevalError as error:
            if contender.name == REFERENCE:
                raise
            remarks.append(f"{contender.name} was not measured: {error}")
        else:
            yield trial


def _build(contender: Contender, named: Named) -> None:
    """Build the graph here if it is not in the cache yet, so that the memory of building is not that of running."""
    from rageval_spec.inference.exports import provide_graph
    from rageval_spec.plugin import Context

    if contender.name != TORCH:
        context = Context(contender.name)
        provide_graph(named.source, named.configuration, contender.node["precision"], context.fingerprint)


def _list_contenders(request: Request, named: Named, job: Job) -> Iterator[Contender]:
    from rageval_spec.commands.models.trial import Contender

    place = {"model": request.model, "revision": named.source.location.revision or request.revision}
    for precision in (REFERENCE, "int8"):
        node = {"use": "onnx", **place, "file": request.file, "precision": precision}
        yield Contender(precision, node, Path(), request.threads)
    has_weights = any(named.source.folder.glob("*.safetensors"))
    if job.unit == "text" and has_weights and importlib.util.find_spec(TORCH):
        yield Contender(TORCH, {"use": TORCH, **place, "device": "cpu"}, Path(), request.threads)


def _measure(trials: list[Trial], job: Job, rounds: int, display: ProgressDisplay) -> tuple[tuple[Measured, ...], int]:
    """What each form took, and how many texts or pairs the reference truncated."""
    from rageval_spec.wording import count_noun

    outcomes: dict[str, list[Outcome[Any]]] = {trial.name: [] for trial in trials}
    display.announce(f"read {count_noun(len(job.content), job.unit)} in {count_noun(rounds, 'round')}")
    for number in range(rounds):
        for trial in trials[number % len(trials) :] + trials[: number % len(trials)]:
            label = f"{trial.name}, round {number + 1} of {rounds}"
            outcomes[trial.name].append(job.run(trial, display.counting(label)))
    reference = outcomes[REFERENCE][-1].answer
    measured = tuple(
        Measured(
            name,
            tuple(outcome.seconds for outcome in found),
            max(outcome.peak_bytes for outcome in found),
            found[-1].start_bytes,
            **({} if name == REFERENCE else job.compare(found[-1].answer, reference)),
        )
        for name, found in outcomes.items()
    )
    return measured, int(reference.truncated.sum())


def _rank(
    trials: Sequence[Trial], request: Request, named: Named, collection: Collection, display: ProgressDisplay
) -> dict[str, float]:
    """nDCG@10 of exact search with fp32 and with int8, over the whole folder."""
    from rageval_spec import registry
    from rageval_spec.api.ranking import evaluate
    from rageval_spec.commands.models.trial import TriedEmbedding
    from rageval_spec.plugin import Context

    dense = registry.load("systems", "dense")
    quality: dict[str, float] = {}
    display.announce(f"search {collection.name}")
    for trial in trials:
        if trial.name != TORCH:
            model = TriedEmbedding(trial, request.model, named.configuration.similarity, display)
            node = dense.node_type(use="dense", model=trial.name, depth=100)
            system = dense(node, Context(trial.name, threads=request.threads, models={trial.name: model}))
            run = system.retrieve(collection, {}).run
            results = evaluate(_judgements(collection), run, [MEASURE], missing="zero", drop_self=True)
            quality[trial.name] = results[MEASURE]
    return quality


def _open_collection(path: Path | None) -> Collection | None:
    """The BEIR folder with only its judged queries; None if the path is not a folder."""
    from rageval_spec import registry
    from rageval_spec.data.tables import only_queries
    from rageval_spec.plugin import Context

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


@click.command(cls=Command)
@shared.model_argument
@click.option(
    "--texts", type=click.Path(path_type=Path), metavar="PATH",
    help="A file with one text per line, a .jsonl file with 'text', or a BEIR folder, which also compares how well "
    "fp32 and int8 retrieve.  [default: built-in texts]",
)  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=500, show_default=True, help="How many texts to use.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How many times to measure.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="How many threads to use.  [default: all cores]")
@shared.form_option
def bench(form: str, **request: Any) -> int:
    """Measure a model: its speed, its memory, and what int8 changes.

    Compares fp32 and int8 in ONNX Runtime, and for embedding models sentence-transformers on the CPU if it is
    installed. Each runs in its own process, and the processes take turns. Classifiers and token classifiers read
    pairs: each text with one of its sentences, or one of the next text.

    \b
    rageval-spec models bench minilm
    rageval-spec models bench intfloat/e5-small-v2 --texts data/scifact --count 2000
    """
    measured = measure_forms(Request(**request))
    console.write_form(measured.to_json() if form == "json" else measured.to_text(), form)
    return PASSED
