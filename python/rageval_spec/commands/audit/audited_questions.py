"""Finds what an audit works with: questions, earlier results, and a model that compares meanings.

The questions are those that an evaluation would ask. The values of earlier evaluations of a spec show more about its
questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec import registry
from rageval_spec.audit import question_set
from rageval_spec.audit.mix_and_size import Power
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.plan import measure_power
from rageval_spec.commands.results_argument import NamedResults, is_results, open_results
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, RagevalError, UsageError, expand_home
from rageval_spec.history.evaluation_lookup import PREVIOUS, NoRecordYetError, SearchPlaces, find_record
from rageval_spec.pipeline.planning.question_selection import queries_to_ask
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.plugin import AnswerMetric, Context, Dataset, EmbeddingModel, Metric
from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.runner import STORE
from rageval_spec.spec import load
from rageval_spec.store.store import open_store
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rageval_spec.audit.duplicates import Embed
    from rageval_spec.data.tables import Collection
    from rageval_spec.spec.blocks.spec_node import Spec


_SET = "questions"
_OF_SPECS = ("datasets:", "systems:", "metrics:")


@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes:
        name: the name of the spec, or of the file.
        datasets: the datasets by name.
        spec, parts: the spec and its plugins; None for a dataset without a spec.
    """

    name: str
    datasets: Mapping[str, Dataset[Any]]
    spec: Spec | None = None
    parts: SpecPlugins | None = None


def open_subject(path: Path, overrides: Sequence[str], store: Path | None = None) -> Subject:
    """The datasets of a spec, or a dataset that is a file or a folder.

    Args:
        path: the spec, the file or the folder.
        overrides: values that replace those of the spec.
        store: the folder of the store, which has the questions that a model wrote; by default the one beside the spec.

    Raises:
        SpecError: the spec is wrong.
        UsageError: there is no such file, or a dataset is given with overrides.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if _is_spec(path):
        spec = load(path, overrides=overrides)
        folder = spec.folder / STORE if store is None else store
        kept = open_store(folder if folder.is_dir() else None)
        parts = build_parts(spec, answers=kept.answers, fingerprint=kept.fingerprint)
        return Subject(spec.name, parts.datasets, spec, parts)
    if overrides:
        raise UsageError(f"--set needs a spec, and {path} is a dataset")
    return Subject(path.name, {_SET: _build(path, _SET)})


def _is_spec(path: Path) -> bool:
    """Whether a file is YAML with a section of specs. Sets of questions can be YAML, too.

    Raises:
        UsageError: it cannot be read.
    """
    if path.suffix not in (".yaml", ".yml") or path.is_dir():
        return False
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    return not lines or any(line.startswith(_OF_SPECS) for line in lines)


def open_questions(dataset: Dataset[Any]) -> question_set.AuditedQuestions:
    """The questions of a dataset that an evaluation would ask: all of them, or the judged ones.

    Raises:
        DataError: the dataset cannot be read, or has neither questions nor judgements.
    """
    collection = dataset.open()
    return question_set.read_questions(dataset, collection, _list_asked(collection))


def _list_asked(collection: Collection) -> Sequence[str]:
    if collection.queries is not None and collection.queries.height:
        asked = queries_to_ask(collection).queries
        assert asked is not None, "queries_to_ask refuses a collection without queries"
        return asked["query_id"].to_list()
    if collection.qrels is None or not collection.qrels.height:
        raise DataError(f"dataset '{collection.name}' has neither questions nor judgements to audit")
    return collection.qrels["query_id"].unique(maintain_order=True).to_list()


def open_train(path: Path) -> question_set.AuditedQuestions:
    """The questions of a file that no spec declares, of a BEIR folder, or of a split of one (`data/qrels/train.tsv`).

    Raises:
        UsageError: there is no such file.
        DataError: it cannot be read, or has no questions.
    """
    if not path.exists():
        raise UsageError(f"--train {path}: no such file")
    return open_questions(_build(path, "train"))


def _build(path: Path, called: str) -> Dataset[Any]:
    name = path.name.removesuffix(".gz").removesuffix(".zst")
    if path.is_dir():
        splits = sorted(one.name.partition(".tsv")[0] for one in (path / "qrels").glob("*.tsv*"))
        if not splits:
            raise UsageError(
                f"{path}: a folder must be in BEIR's layout, with judgements in {path / 'qrels'}; to audit "
                "a file of it, name the file"
            )
        wanted = "train" if called == "train" else "test"
        return _declare(called, "beir", path=str(path), split=wanted if wanted in splits else splits[0])
    if name.endswith(".tsv") and path.parent.name == "qrels":
        return _declare(called, "beir", path=str(path.parent.parent), split=name.removesuffix(".tsv"))
    return _declare(called, "golden", path=str(path))


def _declare(called: str, word: str, **keys: str) -> Dataset[Any]:
    plugin = registry.load("datasets", word)
    built: Dataset[Any] = plugin(plugin.node_type(use=word, **keys), Context(called, Path()))
    return built


@dataclass(frozen=True)
class EarlierResults:
    """Results of earlier evaluations.

    Attributes:
        opened: the results, by the names that the user gave them.
        why_none: if there are none, why, and what to do.
    """

    opened: Sequence[NamedResults]
    why_none: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the results."""
        return [one.name for one in self.opened]


def find_results(spec: Spec, named: Sequence[str]) -> EarlierResults:
    """The results that are named; else the last results if they are of this spec, else its newest record.

    Raises:
        UsageError: there are no results of a name.
        DataError: results cannot be read.
    """
    if named:
        return EarlierResults([open_results(name) for name in _list_distinct(named)])
    if is_results(RESULTS_FOLDER):
        opened = open_results()
        if opened.evaluation.name == spec.name:
            return EarlierResults([opened])
    try:
        record = find_record(PREVIOUS, SearchPlaces.of(spec))
    except NoRecordYetError:
        return EarlierResults([], f"'{spec.name}' has not been evaluated; evaluate it with: {PROGRAM} run {spec.path}")
    except RagevalError as error:
        return EarlierResults([], f"the history cannot be read: {error}")
    return EarlierResults(
        [NamedResults(f"record {record.id[:8]}" if record.id else "the newest record", record.evaluation)]
    )


def _list_distinct(names: Sequence[str]) -> list[str]:
    """The names without those of results that an earlier one names: their systems would count twice."""
    distinct: dict[str | Path, str] = {}
    for name in names:
        path = expand_home(name).resolve() if is_results(name) else None
        distinct.setdefault(name if path is None else path.parent if path.is_file() else path, name)
    return [*distinct.values()]


def list_powers(spec: Spec, parts: SpecPlugins, found: EarlierResults, dataset: str) -> list[Power] | None:
    """What the questions of a dataset can show, from the first results.

    A drop that is larger than the range of the metric's values cannot be shown.

    Returns:
        None without results, or if the spec has clusters or weights of which the results know nothing.
    """
    if not found.opened:
        return None
    try:
        rows = measure_power(spec, found.opened[0])
    except UsageError:
        return None
    return [
        Power(
            row.system,
            row.metric,
            row.baseline,
            row.queries,
            row.sd,
            _keep_possible(row.smallest_drop, parts.metrics[row.metric]),
            row.max_drop,
            row.needed,
        )
        for row in rows
        if row.dataset == dataset
    ]


def _keep_possible(drop: float | None, metric: Metric[Any]) -> float | None:
    low, high = metric.bounds
    return None if drop is None or (high is not None and drop > high - low) else drop


def measure(
    spec: Spec, parts: SpecPlugins, found: EarlierResults, dataset: str, wanted: str | None
) -> question_set.MetricValues | None:
    """The values of all systems on a dataset, of one metric.

    Args:
        spec: the spec.
        parts: its plugins.
        found: the results.
        dataset: the dataset's name.
        wanted: the metric; None for the first of the spec whose values have a best and a worst.

    Returns:
        None if no system has values of such a metric.

    Raises:
        UsageError: the spec has no such metric, or its values have no best and worst.
    """
    if wanted is not None and (wanted not in parts.metrics or not _has_ends(parts.metrics[wanted])):
        known = [name for name, metric in parts.metrics.items() if _has_ends(metric)]
        raise UsageError(f"--metric {wanted}: {suggest(wanted, known) or f'write one of {list_choices(known)}'}")
    names = [wanted] if wanted is not None else [name for name, one in parts.metrics.items() if _has_ends(one)]
    for name in names:
        columns = dict(_read_columns(found, dataset, name))
        if columns:
            return _orient(name, parts.metrics[name], columns, spec.diagnosis.wrong_below)
    return None


def _has_ends(metric: Metric[Any]) -> bool:
    return metric.higher_is_better is not None and metric.bounds[1] is not None


def _read_columns(found: EarlierResults, dataset: str, metric: str) -> Iterator[tuple[str, dict[str, float]]]:
    import polars as pl

    for opened, end in zip(found.opened, _list_ends(found), strict=True):
        values = opened.evaluation.values
        wanted = (pl.col("dataset") == dataset) & (pl.col("metric") == metric) & (pl.col("status") == "scored")
        rows = values.filter(wanted).select("system", "query_id", "value")
        for (system,), part in rows.group_by(["system"], maintain_order=True):
            yield f"{system}{end}", dict(part.select("query_id", "value").iter_rows())


def _list_ends(found: EarlierResults) -> list[str]:
    """What tells systems of several results apart: nothing if there is one."""
    return [f" ({name})" if len(found.opened) > 1 else "" for name in found.names]


def _orient(
    name: str, metric: Metric[Any], columns: dict[str, dict[str, float]], wrong_below: float
) -> question_set.MetricValues:
    """The values so that high ones are good. An answer below `wrong_below` fails, and a ranking at the lowest value."""
    low, high = metric.bounds
    assert high is not None, "only metrics with a highest value are measured"
    sign = 1.0 if metric.higher_is_better else -1.0
    worst, best = (low, high) if sign > 0 else (-high, -low)
    fails_at = worst
    if isinstance(metric, AnswerMetric):
        fails_at = math.nextafter(worst + wrong_below * (best - worst), -math.inf)
    turned = {system: {query: sign * value for query, value in own.items()} for system, own in columns.items()}
    return question_set.combine(name, turned, best, fails_at)


def list_outputs(found: EarlierResults, dataset: str) -> question_set.Outputs | None:
    """What the systems made of each question of a dataset: none if the results hold no samples.

    Returns:
        None without results, or if they are of other datasets.
    """
    if not any(dataset in opened.evaluation.values["dataset"] for opened in found.opened):
        return None
    return question_set.read_outputs(_read_samples(found, dataset))


def _read_samples(found: EarlierResults, dataset: str) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    columns = ("dataset", "system", "query_id", "answer", "context_ids", "relevant")
    for opened, end in zip(found.opened, _list_ends(found), strict=True):
        rows = opened.evaluation.select_samples(*columns)
        yield end, rows.filter(pl.col("dataset") == dataset)


_LOCAL = ("onnx", "sentence_transformers")
"""Models that run on this machine, so that asking them costs nothing."""
_BY_WORDS = "Compared by their words"


class Meaning(NamedTuple):
    """How questions are compared: what gives their vectors, or None, and a sentence about it."""

    embed: Embed | None
    remark: str


def find_meaning(parts: SpecPlugins | None, wanted: str | None) -> Meaning:
    """The model to compare questions with: the one that is named, else the first one of the spec that is local.

    A local model that cannot be opened is left out, with its reason; a model behind an endpoint is only asked if it
    is named.

    Raises:
        UsageError: the spec has no embedding model of this name.
        RagevalError: the named model cannot be opened.
    """
    models = {} if parts is None else dict(parts.models)
    known = {name: model for name, model in models.items() if isinstance(model, EmbeddingModel)}
    if wanted is not None and wanted not in known:
        hint = suggest(wanted, list(known)) or (f"it has {list_choices([*known])}" if known else "it has none")
        raise UsageError(f"--model {wanted}: the spec has no embedding model of this name; {hint}")
    name = wanted or next((name for name, model in known.items() if model.node.use in _LOCAL), None)
    if name is None:
        return Meaning(None, f"{_BY_WORDS}; an embedding model in the spec also compares their meaning.")
    model = known[name]
    try:
        model.prepare()
    except RagevalError as error:
        if wanted is not None:
            raise
        return Meaning(None, f"{_BY_WORDS}, because the model '{name}' cannot be opened: {error}")

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return model.embed(texts, "query").vectors

    return Meaning(embed, f"{_BY_WORDS} and, with the model '{name}', by their meaning.")
