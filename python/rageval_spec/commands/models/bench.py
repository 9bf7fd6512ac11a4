"""`rageval-spec models bench`: the speed and memory of a model's forms, and how well their answers agree.

The model embeds texts, scores pairs, or labels the tokens of pairs. The results are text or JSON.
"""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, Self

import click

from rageval_spec import registry
from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.commands.models.listing import Named, find_model, format_bytes
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import PASSED, DataError, RagevalError
from rageval_spec.judging.cosine_scale import CosineScale, list_unrelated, measure_scale
from rageval_spec.libraries import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onnx_from_checkpoints import Task
    from rageval_spec.commands.models.model_process import Trial, TrialResult, TriedModel
    from rageval_spec.data.tables import Collection
    from rageval_spec.drawing.view import Block
    from rageval_spec.progress import Progress, ProgressDisplay


TORCH = "sentence_transformers"
_WARM_UP = 16


def measure_forms(
    model: str,
    *,
    texts: Path | None = None,
    count: int = 500,
    rounds: int = 3,
    threads: int | None = None,
    revision: str | None = None,
    **files: Any,
) -> Bench:
    """Measure fp32, int8 and, if it is installed, sentence-transformers, each in its own process.

    `texts` is a file or a BEIR folder, or None for built-in texts; `files` are the other options of `find_model`. The
    rounds are interleaved, so that other load on the machine affects all forms alike.
    """
    from rageval_spec.inference.session import count_cores
    from rageval_spec.progress import ProgressDisplay

    named = find_model(model, revision, **files)
    collection = _open_collection(texts)
    job = make_job(named.configuration.task, choose_texts(texts, count, collection))
    keys = {"model": model, "revision": named.source.location.revision or revision, **files}
    forms = _list_forms(named, job, keys, threads)
    remarks: list[str] = []
    with ProgressDisplay() as display, ExitStack() as processes:
        trials = list(_start(forms, named, job, processes, display, remarks))
        measured, truncated = _measure(trials, job, rounds, display)
        ranks = collection is not None and job.unit == "text"
        quality = _rank(trials, named, collection, threads, display) if ranks and collection is not None else {}
        vectors = trials[0].ask("embed", list(list_unrelated())).answer.vectors if job.unit == "text" else None
        unrelated = None if vectors is None else measure_scale(vectors, vectors, model)
    return Bench(
        model,
        len(job.content),
        count_tokens(named, revision, job),
        truncated,
        threads or count_cores(),
        rounds,
        measured,
        collection.name if collection is not None and ranks else None,
        quality,
        tuple(remarks),
        job.unit,
        unrelated,
    )


def _start(
    forms: Iterable[TriedModel], named: Named, job: Job, stack: ExitStack, display: ProgressDisplay, remarks: list[str]
) -> Iterator[Trial]:
    """The forms that run, already built and loaded. The reference must run."""
    from rageval_spec.commands.models.model_process import Trial
    from rageval_spec.progress import ignore_progress

    for form in forms:
        display.announce(f"load {form.name}")
        try:
            _build(form, named)
            trial = stack.enter_context(Trial(form))
            job.start(_WARM_UP).run(trial, ignore_progress)
        except RagevalError as error:
            if form.name == REFERENCE:
                raise
            remarks.append(f"{form.name} was not measured: {error}")
        else:
            yield trial


def _build(form: TriedModel, named: Named) -> None:
    """Build the graph here if it is not in the cache yet, so that the memory of building is not that of running."""
    from rageval_spec.inference.exports import provide_graph
    from rageval_spec.plugin import Context

    if form.name != TORCH:
        context = Context(form.name)
        provide_graph(named.source, named.configuration, form.node["precision"], context.fingerprint)


def _list_forms(named: Named, job: Job, keys: Mapping[str, Any], threads: int | None) -> Iterator[TriedModel]:
    from rageval_spec.commands.models.model_process import TriedModel

    for precision in (REFERENCE, "int8"):
        yield TriedModel(precision, {"use": "onnx", **keys, "precision": precision}, Path(), threads)
    has_weights = any(named.source.folder.glob("*.safetensors"))
    if job.unit == "text" and has_weights and importlib.util.find_spec(TORCH):
        place = {key: keys[key] for key in ("model", "revision")}
        yield TriedModel(TORCH, {"use": TORCH, **place, "device": "cpu"}, Path(), threads)


def _measure(
    trials: list[Trial], job: Job, rounds: int, display: ProgressDisplay
) -> tuple[tuple[FormResult, ...], int]:
    """What each form took, and how many texts or pairs the reference truncated."""
    from rageval_spec.wording import count_noun

    outcomes: dict[str, list[TrialResult]] = {trial.name: [] for trial in trials}
    display.announce(f"read {count_noun(len(job.content), job.unit)} in {count_noun(rounds, 'round')}")
    for number in range(rounds):
        for trial in trials[number % len(trials) :] + trials[: number % len(trials)]:
            label = f"{trial.name}, round {number + 1} of {rounds}"
            outcomes[trial.name].append(job.run(trial, display.counting(label)))
    reference = outcomes[REFERENCE][-1].answer
    measured = tuple(
        FormResult(
            name,
            tuple(outcome.seconds for outcome in found),
            max(outcome.peak_bytes for outcome in found),
            found[-1].start_bytes,
            None if name == REFERENCE else job.compare(found[-1].answer, reference),
        )
        for name, found in outcomes.items()
    )
    return measured, int(reference.truncated.sum())


def _rank(
    trials: Sequence[Trial], named: Named, collection: Collection, threads: int | None, display: ProgressDisplay
) -> dict[str, float]:
    """nDCG@10 of exact search with fp32 and with int8, over the whole folder."""
    from rageval_spec.api.rankings import evaluate
    from rageval_spec.commands.models.model_process import TriedEmbedding
    from rageval_spec.plugin import Context

    dense = registry.load("systems", "dense")
    quality: dict[str, float] = {}
    display.announce(f"search {collection.name}")
    for trial in trials:
        if trial.name != TORCH:
            model = TriedEmbedding(trial, named.name, named.configuration.similarity, display)
            node = dense.node_type(use="dense", model=trial.name, depth=100)
            system = dense(node, Context(trial.name, threads=threads, models={trial.name: model}))
            run = system.retrieve(collection, {}).run
            results = evaluate(_judgements(collection), run, [MEASURE], missing="zero", drop_self=True)
            quality[trial.name] = results[MEASURE]
    return quality


def _open_collection(path: Path | None) -> Collection | None:
    """The BEIR folder with only its judged queries; None if the path is not a folder."""
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


@click.command(cls=OutputCommand)
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
def bench(form: str, **options: Any) -> int:
    """Measure a model: its speed, its memory, and what int8 changes.

    Compares fp32 and int8 in ONNX Runtime, and for embedding models sentence-transformers on the CPU if it is
    installed. Each runs in its own process, and the processes take turns. Classifiers and token classifiers read
    pairs: each text with one of its sentences, or one of the next text.

    \b
    rageval-spec models bench minilm
    rageval-spec models bench intfloat/e5-small-v2 --texts data/scifact --count 2000
    """
    from rageval_spec.drawing.view import write_text

    measured = measure_forms(**options)
    console.write(measured.to_json() if form == "json" else write_text(measured.draw()))
    return PASSED


@dataclass(frozen=True)
class Job:
    """Texts or pairs of texts, and the method of a model that reads them."""

    method: Literal["embed", "score", "tag"]
    content: Sequence[Any]

    @property
    def unit(self) -> Literal["text", "pair"]:
        return "text" if self.method == "embed" else "pair"

    def start(self, count: int) -> Self:
        """The same for only the first `count`."""
        return replace(self, content=self.content[:count])

    def run(self, trial: Trial, progress: Progress) -> TrialResult:
        return trial.ask(self.method, list(self.content), progress=progress)

    def compare(self, answer: Any, reference: Any) -> tuple[float, float]:
        """How well two forms of a model agree; see `FormResult.compared`."""
        if self.method == "embed":
            first, second = answer.vectors.astype(np.float64), reference.vectors.astype(np.float64)
            lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
            cosines = (first * second).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)
            return float(cosines.mean()), float(cosines.min())
        logits = (one.logits if self.method == "score" else np.concatenate(one.logits) for one in (answer, reference))
        own, whole = map(_find_probabilities, logits)
        apart = np.abs(own - whole)
        return (float(apart.mean()), float(apart.max())) if apart.size else (0.0, 0.0)


def make_job(task: Task | None, texts: Sequence[str]) -> Job:
    """What a model of this task is measured with; without a task, that of an embedding model."""
    if task == "classification":
        return Job("score", pair_texts(texts))
    return Job("tag", pair_texts(texts)) if task == "token_classification" else Job("embed", texts)


def _find_probabilities(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """The softmax of the logits of several labels, and the logistic function of the logit of a single one."""
    wide = logits.astype(np.float64)
    if wide.shape[-1] == 1:
        logistic: NDArray[np.float64] = 0.5 * (1 + np.tanh(0.5 * wide))
        return logistic
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def count_tokens(named: Named, revision: str | None, job: Job) -> int:
    """How many tokens the model reads, special tokens included."""
    from rageval_spec.inference.encoder import load_model_tokenizer
    from rageval_spec.inference.hub import find_published_name
    from rageval_spec.inference.verifiers import choose_reading

    configuration, location = named.configuration, named.source.location
    if configuration.task == "classification":
        reading = choose_reading(configuration, lambda: find_published_name(location, revision), None, None)
        configuration = replace(configuration, **reading)
    prefix = configuration.document_prefix if job.unit == "text" else ""
    content = [prefix + text for text in job.content] if prefix else job.content
    return sum(map(len, load_model_tokenizer(named.source, configuration).read(content).ids))


_SENTENCES = Path(__file__).parent / "sentences.txt"
_MOST_SENTENCES = 12
_SEED = 20_240_601


def choose_texts(path: Path | None, count: int, collection: Collection | None) -> list[str]:
    """The first `count` distinct texts of a collection or a file, or built-in texts without either."""
    from rageval_spec.data.tables import document_texts

    if collection is not None:
        found = document_texts(collection.require("corpus", "models bench")).to_list()
    else:
        found = list(_read_texts(path) if path else write_texts(count))
    texts = [text for text in dict.fromkeys(found) if text.strip()][:count]
    if not texts:
        raise DataError(f"{path}: the file contains no text")
    return texts


def _read_texts(path: Path) -> Iterator[str]:
    """One text per line; in a `.jsonl` file, the key `title` followed by the key `text`."""
    from rageval_spec.reading.formats.text_files import format_of, text_lines

    is_json = format_of(path) in ("jsonl", "ndjson")
    for number, line in text_lines(path):
        if line.strip():
            yield _read_object(line, f"{path}:{number}") if is_json else line


def _read_object(line: str, place: str) -> str:
    try:
        content = json.loads(line)
        return f"{content.get('title') or ''} {content['text']}".strip()
    except (ValueError, RecursionError, AttributeError, KeyError) as error:
        raise DataError(f'{place}: expected an object such as {{"text": "..."}}') from error


def write_texts(count: int) -> Iterator[str]:
    """`count` passages of one to twelve sentences, the same every time."""
    sentences = _SENTENCES.read_text("utf-8").splitlines()
    choice = random.Random(_SEED)
    for number in range(1, count + 1):
        chosen = choice.sample(sentences, choice.randint(1, _MOST_SENTENCES))
        yield f"{number}. {' '.join(chosen)}"


def pair_texts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs for classifiers: each text with a claim, which is in turn a sentence of it and one of the next text."""
    from rageval_spec import kernels

    choice, pairs = random.Random(_SEED), []
    for place, text in enumerate(texts):
        of = text if place % 2 == 0 else texts[(place + 1) % len(texts)]
        start, end = choice.choice(kernels.split_sentences(of))
        pairs.append((text, of[start:end]))
    return pairs


REFERENCE = "fp32"
MEASURE = "ndcg@10"
_MEMORY = (
    "memory: the peak of the process that runs the model, above what it had before it loaded the model and its "
    "libraries (resident set size)"
)
DIGITS = 4
"""Quantisation changes a measure in the fourth digit."""


@dataclass(frozen=True, slots=True)
class FormResult:
    """What one form of the model took.

    Attributes:
        seconds: those of each round.
        peak_bytes: the peak memory of its process.
        start_bytes: what of it the process had before it loaded the model and its libraries.
        compared: the mean and the lowest cosine of its vectors with those of fp32; or how far its probabilities are
            from those of fp32, on average and at most, over all pairs (or tokens) and labels. None for fp32.
    """

    name: str
    seconds: tuple[float, ...]
    peak_bytes: int
    start_bytes: int = 0
    compared: tuple[float, float] | None = None

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True)
class Bench:
    """The results of a measurement.

    Attributes:
        texts: how many texts, or pairs of texts, were read.
        unit: what was read.
        tokens: how many tokens the model read, over all of them.
        truncated: how many of them were truncated.
        quality: each form's mean nDCG@10 on the BEIR folder; empty without one.
        remarks: forms that could not be measured, and why.
        unrelated: the cosines of texts that have nothing in common; None for a classifier.
    """

    model: str
    texts: int
    tokens: int
    truncated: int
    threads: int
    rounds: int
    measured: tuple[FormResult, ...]
    dataset: str | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unit: Literal["text", "pair"] = "text"
    unrelated: CosineScale | None = None

    def draw(self) -> Iterator[Block]:
        from rageval_spec.drawing.view import Heading, Line, tabulate
        from rageval_spec.wording import count_noun

        cut = f" ({self.truncated} of them truncated)" if self.truncated else ""
        rounds = "one round" if self.rounds == 1 else f"the median of {self.rounds} interleaved rounds"
        yield Heading(
            f"{self.model}: {count_noun(self.texts, self.unit)}{cut}, {self.tokens:,} tokens, "
            f"{count_noun(self.threads, 'thread')}, {rounds}"
        )
        compared = "cosine with fp32" if self.unit == "text" else "probabilities off fp32"
        quality = f"{MEASURE} on {self.dataset}"
        header = ("form", f"{self.unit}s/s", "tokens/s", "speed", "memory", compared, quality)
        yield tabulate(header, map(self._list_cells, self.measured), range(1, 7))
        yield Line(_MEMORY)
        if self.unrelated is not None:
            mean, low, high = self.unrelated
            yield Line(f"cosines of unrelated texts: mean {mean:.3f}, 90% of pairs from {low:.3f} to {high:.3f}")
        yield from (Line(f"! {remark}") for remark in self.remarks)

    def _list_cells(self, form: FormResult) -> tuple[str, ...]:
        worst = "lowest" if self.unit == "text" else "at most"
        return (
            form.name,
            f"{self.texts / form.median:.1f}",
            f"{self.tokens / form.median:,.0f}",
            f"{self.measured[0].median / form.median:.2f}x",
            format_bytes(form.peak_bytes - form.start_bytes),
            "" if form.compared is None else f"{form.compared[0]:.4f}, {worst} {form.compared[1]:.4f}",
            self._describe_quality(form.name),
        )

    def _describe_quality(self, name: str) -> str:
        from rageval_spec.wording import format_number

        if name not in self.quality:
            return ""
        difference = self.quality[name] - self.quality[REFERENCE]
        change = "" if name == REFERENCE else f" ({difference:+.4f})"
        return f"{format_number(self.quality[name], DIGITS)}{change}"

    def to_json(self) -> str:
        forms = [self._describe_form(form) for form in self.measured]
        names = ("model", "unit", "texts", "tokens", "truncated", "threads", "rounds", "dataset")
        content = {name: getattr(self, name) for name in names}
        content["unrelated_cosines"] = self.unrelated and self.unrelated._asdict()
        return json.dumps({**content, "forms": forms, "remarks": self.remarks}, indent=2, ensure_ascii=False) + "\n"

    def _describe_form(self, form: FormResult) -> dict[str, Any]:
        is_text = self.unit == "text"
        named = form.compared and dict(zip(("mean", "lowest" if is_text else "largest"), form.compared, strict=True))
        return {
            "name": form.name,
            f"{self.unit}s_per_second": self.texts / form.median,
            "tokens_per_second": self.tokens / form.median,
            "seconds": list(form.seconds),
            "peak_memory_bytes": form.peak_bytes,
            "start_memory_bytes": form.start_bytes,
            "cosine_with_fp32" if is_text else "probability_difference_from_fp32": named,
            **({MEASURE: self.quality.get(form.name)} if is_text else {}),
        }
