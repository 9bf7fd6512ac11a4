"""What `rageval-spec models` does: list models, export one as ONNX, measure what its forms cost and how they agree."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from rageval_spec import registry
from rageval_spec.commands.models.trial import Contender, Trial
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, Role
from rageval_spec.progress import ProgressDisplay
from rageval_spec.wording import count_noun, format_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.commands.models.trial import Outcome
    from rageval_spec.data.tables import Collection
    from rageval_spec.inference.configuration import Configuration
    from rageval_spec.inference.sources import Source

Precision = Literal["fp32", "int8"]
REFERENCE, TORCH = "fp32", "sentence_transformers"
MEASURE = "ndcg@10"
_SENTENCES = Path(__file__).parent / "sentences.txt"
_MOST_SENTENCES = 12
_WARM_UP = 16
_SEED = 20_240_601


# The models there are


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that is on this machine, or could be; `form` says in which shape, `bytes` is None where it is not."""

    name: str
    form: str
    bytes: int | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Listing:
    """All models, by where they are."""

    embedded: tuple[Listed, ...]
    hub: tuple[Listed, ...]
    built: tuple[Listed, ...]
    hub_folder: Path
    built_folder: Path

    def to_text(self) -> str:
        """Three short tables."""
        sections = (
            ("Embedded", self.embedded, ""),
            (f"Fetched from the Hugging Face hub: {_shorten(self.hub_folder)}", self.hub, "none yet: a run fetches "
             "what its spec names"),
            (f"Built here: {_shorten(self.built_folder)}", self.built, "none yet: a run builds what it needs"),
        )  # fmt: skip
        rows = [entry for _, entries, _ in sections for entry in entries]
        widths = max((len(row.name) for row in rows), default=0), max((len(row.form) for row in rows), default=0)
        blocks = []
        for title, entries, otherwise in sections:
            lines = [_list_entry(entry, *widths) for entry in entries] or [f"  {otherwise}"]
            blocks.append("\n".join([title, *lines]))
        hint = (
            "Write a name under 'models:', as {use: onnx, model: NAME}; a folder or an .onnx file is a model as well."
        )
        return "\n\n".join([*blocks, hint]) + "\n"

    def to_json(self) -> str:
        """The same for programs."""
        sections = {"embedded": self.embedded, "hub": self.hub, "built": self.built}
        content: dict[str, Any] = {
            name: [
                {"name": entry.name, "form": entry.form, "bytes": entry.bytes, "revision": entry.revision}
                for entry in entries
            ]
            for name, entries in sections.items()
        }
        folders = {"hub_folder": str(self.hub_folder), "built_folder": str(self.built_folder)}
        return json.dumps({**content, **folders}, indent=2, ensure_ascii=False) + "\n"


def list_models() -> Listing:
    """The embedded models, those in the hub's cache, and the graphs in the cache of this program."""
    from rageval_spec.inference.exports import find_cache, list_cached
    from rageval_spec.inference.sources import EMBEDDED, find_hub_cache

    return Listing(
        tuple(_look_at_embedded(name) for name in EMBEDDED),
        tuple(_look_at_fetched(name) for name in _fetched_names()),
        tuple(Listed(model.name, model.precision, model.bytes) for model in list_cached()),
        find_hub_cache(),
        find_cache() / "models",
    )


def _look_at_embedded(name: str) -> Listed:
    from rageval_spec.inference.sources import find_source, locate

    try:
        source = find_source(locate(name, Path()))
    except RagevalError as error:
        return Listed(name, str(error))
    return Listed(name, source.format if source else "", _size(source.folder) if source else None)


def _look_at_fetched(name: str) -> Listed:
    from rageval_spec.inference.sources import find_hub_cache, find_source, locate

    location = locate(name, find_hub_cache())  # where no folder has the name of a model
    size = _size(location.folder) if location.folder else None
    try:
        source = find_source(location)
    except RagevalError as error:
        return Listed(name, str(error))
    return Listed(name, source.format if source else "not all of it, or no form for onnx", size, location.revision)


def _fetched_names() -> list[str]:
    from rageval_spec.inference.sources import find_hub_cache

    found = sorted(path.name for path in find_hub_cache().glob("models--*--*"))
    return [name.removeprefix("models--").replace("--", "/", 1) for name in found if name.count("--") == 2]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _list_entry(entry: Listed, name_width: int, form_width: int) -> str:
    size = "" if entry.bytes is None else format_bytes(entry.bytes)
    revision = f"  {entry.revision[:12]}" if entry.revision else ""
    if entry.bytes is None:
        return f"  {entry.name:<{name_width}}  {entry.form}"
    return f"  {entry.name:<{name_width}}  {entry.form:<{form_width}}  {size:>9}{revision}"


def format_bytes(count: int) -> str:
    """`90.9 MB`: three digits or more, in powers of 1000."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size * 0.9995:
            return f"{count / size:.1f} {unit}" if count < 100 * size else f"{count / size:.0f} {unit}"
    return f"{count} B"


def _shorten(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


# One of them as ONNX


@dataclass(frozen=True)
class Named:
    """A model that the command line names: where its files are, and what they say of it."""

    name: str
    source: Source
    configuration: Configuration


def find_model(name: str, revision: str | None = None, file: str | None = None) -> Named:
    """The model of that name, fetched where it is not on this machine.

    Raises:
        UsageError: there is no such model.
        RagevalError: it cannot be fetched.
        DataError: its configuration is damaged.
    """
    from rageval_spec.inference import hub
    from rageval_spec.inference.configuration import read_configuration
    from rageval_spec.inference.sources import EMBEDDED, find_source, locate

    location = locate(name, Path(), revision)
    source = find_source(location, file)
    if source is None:
        try:
            with ProgressDisplay() as display:
                display.announce(f"fetch {name}")
                source = find_source(hub.fetch(name, revision, file), file)
        except RagevalError as error:
            near = suggest(name, [other for other in (*_fetched_names(), *EMBEDDED) if other != name])
            raise type(error)(f"{error}; {near}" if near else str(error)) from error
    if source is None:
        raise RagevalError(f"'{name}' was fetched, and files of it are missing all the same; try it again")
    return Named(name, source, read_configuration(source.folder))


def export(model: str, target: Path, precision: Precision, revision: str | None = None, file: str | None = None) -> str:
    """Write a model as a folder that `use: onnx` and other programs read; gives what to tell the user.

    Raises:
        UsageError: there is no such model, no graph can be built of it, or something is in the folder already.
        DataError: its files are damaged.
        RagevalError: it cannot be fetched, or the folder cannot be written.
    """
    from rageval_spec.inference.exports import export_model

    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UsageError(f"{target}: is there already; name a new folder")
    named = find_model(model, revision, file)
    with ProgressDisplay() as display:
        display.announce(f"export {model} as {precision}")
        graph = export_model(named.source, named.configuration, target, precision, Context(model).fingerprint)
    size = sum(path.stat().st_size for path in graph.parent.iterdir() if path.is_file())
    node = f"{{use: onnx, model: {target}}}"
    return f"wrote {graph}, {precision}, {format_bytes(size)}; a spec may say {node}\n"


# What its forms cost, and how they agree


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure: a model, with texts from a file or a BEIR folder, `count` of them, in so many rounds."""

    model: str
    texts: Path | None = None
    count: int = 500
    rounds: int = 3
    threads: int | None = None
    revision: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cosines between the vectors of the same texts in two forms."""

    mean: float
    lowest: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one form of the model took: seconds of each round, the most memory of its process."""

    name: str
    seconds: tuple[float, ...]
    peak_bytes: int
    agreement: Agreement | None = None

    @property
    def median(self) -> float:
        """The median of the rounds, in seconds."""
        return median(self.seconds)


@dataclass(frozen=True)
class Bench:
    """What came of a measurement.

    Attributes:
        tokens: of all texts, as the model reads them.
        truncated: how many texts were cut.
        quality: form to mean nDCG@10 on the BEIR folder, where there is one.
        remarks: forms that could not be measured, and why.
    """

    model: str
    texts: int
    tokens: int
    truncated: int
    threads: int
    rounds: int
    measured: tuple[Measured, ...]
    dataset: str | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def to_text(self) -> str:
        """A table of the forms, their agreement, and what retrieval makes of them."""
        cut = f" ({self.truncated} of them cut)" if self.truncated else ""
        rounds = "one round" if self.rounds == 1 else f"the median of {self.rounds} interleaved rounds"
        head = (
            f"{self.model}: {count_noun(self.texts, 'text')}{cut}, {self.tokens:,} tokens, "
            f"{count_noun(self.threads, 'thread')}, {rounds}"
        )
        return "\n".join([head, "", *self._table(), *(f"! {remark}" for remark in self.remarks)]) + "\n"

    def _table(self) -> Iterator[str]:
        with_quality = bool(self.quality)
        width = max(len(form.name) for form in self.measured)
        head = f"{'':<{width}}  {'texts/s':>8}  {'tokens/s':>9}  {'speed':>6}  {'memory':>8}  {'cosine with fp32':>20}"
        yield head + (f"  {MEASURE + ' on ' + str(self.dataset):>24}" if with_quality else "")
        for form in self.measured:
            speed = self.measured[0].median / form.median
            line = (
                f"{form.name:<{width}}  {self.texts / form.median:>8.1f}  {self.tokens / form.median:>9,.0f}  "
                f"{f'{speed:.2f}x':>6}  {format_bytes(form.peak_bytes):>8}  {_describe(form.agreement):>20}"
            )
            yield (line + (f"  {self._describe_quality(form.name):>24}" if with_quality else "")).rstrip()

    def _describe_quality(self, name: str) -> str:
        if name not in self.quality:
            return ""
        difference = self.quality[name] - self.quality[REFERENCE]
        change = "" if name == REFERENCE else f" ({difference:+.4f})"
        return f"{format_number(self.quality[name])}{change}"

    def to_json(self) -> str:
        """The same for programs, with the seconds of every round."""
        forms = [
            {
                "name": form.name,
                "texts_per_second": self.texts / form.median,
                "tokens_per_second": self.tokens / form.median,
                "seconds": list(form.seconds),
                "peak_memory_bytes": form.peak_bytes,
                "cosine_with_fp32": {"mean": form.agreement.mean, "lowest": form.agreement.lowest}
                if form.agreement
                else None,
                MEASURE: self.quality.get(form.name),
            }
            for form in self.measured
        ]
        names = ("model", "texts", "tokens", "truncated", "threads", "rounds", "dataset")
        content = {name: getattr(self, name) for name in names}
        return json.dumps({**content, "forms": forms, "remarks": self.remarks}, indent=2, ensure_ascii=False) + "\n"


def _describe(agreement: Agreement | None) -> str:
    return "" if agreement is None else f"{agreement.mean:.4f}, least {agreement.lowest:.4f}"


def bench(request: Request) -> Bench:
    """Measure fp32, int8 and, where it is installed, sentence-transformers, each in a process of its own.

    The rounds are interleaved, so that what else the machine does meets all forms alike.

    Raises:
        UsageError: there is no such model, or it gives no embeddings.
        DataError: the texts or the model's files cannot be used.
        RagevalError: the model cannot be fetched or computed.
    """
    from rageval_spec.inference.session import count_cores

    named = find_model(request.model, request.revision, request.file)
    if named.configuration.task == "classification":
        raise UsageError(f"'{request.model}' is a cross-encoder; only embedding models can be measured")
    collection = _open_collection(request.texts)
    texts = _choose_texts(request, collection)
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
    """The forms that run, warm: loaded, and built where they had to be. The reference must run."""
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
    """nDCG@10 of exact search by fp32 and by int8, over the whole folder."""
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
    """A model that another process computes."""

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
    """The BEIR folder, its queries those that are judged."""
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


def _choose_texts(request: Request, collection: Collection | None) -> list[str]:
    """The first distinct texts, as many as were asked for."""
    from rageval_spec.data.tables import document_texts

    if collection is not None:
        found = document_texts(collection.require("corpus", "models bench")).to_list()
    else:
        found = list(_read_texts(request.texts) if request.texts else write_texts(request.count))
    texts = [text for text in dict.fromkeys(found) if text.strip()][: request.count]
    if not texts:
        raise DataError(f"{request.texts}: there is no text in it")
    return texts


def _read_texts(path: Path) -> Iterator[str]:
    """A text a line; of a `.jsonl` file, the key `text` after the key `title`."""
    from rageval_spec.reading.files import format_of, text_lines

    is_json = format_of(path) in ("jsonl", "ndjson")
    for number, line in text_lines(path):
        if line.strip():
            yield _read_object(line, f"{path}:{number}") if is_json else line


def _read_object(line: str, place: str) -> str:
    try:
        content = json.loads(line)
        return f"{content.get('title') or ''} {content['text']}".strip()
    except (ValueError, RecursionError, AttributeError, KeyError) as error:
        raise DataError(f'{place}: wants an object such as {{"text": "..."}}') from error


def write_texts(count: int) -> Iterator[str]:
    """So many passages of one to twelve sentences, always the same."""
    sentences = _SENTENCES.read_text("utf-8").splitlines()
    choice = random.Random(_SEED)
    for number in range(1, count + 1):
        chosen = choice.sample(sentences, choice.randint(1, _MOST_SENTENCES))
        yield f"{number}. {' '.join(chosen)}"


def _count_tokens(named: Named, texts: Sequence[str]) -> tuple[int, int]:
    """Tokens of all texts as the model reads them, and how many texts are cut."""
    from rageval_spec.inference.tokens import load_tokenizer

    source, configuration = named.source, named.configuration
    tokenizer = load_tokenizer(
        source.folder, source.tokenizer, max_length=configuration.max_length, lowercase=configuration.lowercase
    )
    tokens = tokenizer.read([configuration.document_prefix + text for text in texts])
    return sum(map(len, tokens.ids)), int(tokens.truncated.sum())
