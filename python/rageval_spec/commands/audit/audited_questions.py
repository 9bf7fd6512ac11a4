"""Makes an audit of what it finds: questions, earlier results, and a model that compares meanings.

The questions are those that an evaluation would ask. The values of earlier evaluations of a spec show more about its
questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.audit import coverage, duplicates, item_analysis, mix_and_size, question_set
from rageval_spec.audit.audit_findings import Audit, CheckContent, DatasetContent
from rageval_spec.audit.cleaned_copy import clean, describe
from rageval_spec.audit.mix_and_size import Power, WantedMix, read_values
from rageval_spec.commands import console
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.plan import measure_power
from rageval_spec.commands.results_argument import NamedResults, is_results, open_results
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, RagevalError, UsageError, expand_home
from rageval_spec.generation.documents import read_documents
from rageval_spec.generation.question_mix import read_shares
from rageval_spec.history.evaluation_lookup import PREVIOUS, NoRecordYetError, SearchPlaces, find_record
from rageval_spec.judging.cosine_scale import find_scale
from rageval_spec.pipeline.planning.default_model import load_chosen
from rageval_spec.pipeline.planning.question_selection import queries_to_ask
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.pipeline.results.provenance import find_dataset_origin
from rageval_spec.plugin import AnswerMetric, Context, Dataset, EmbeddingModel, Metric
from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.progress import ProgressDisplay
from rageval_spec.runner import STORE
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.store.store import open_store
from rageval_spec.wording import list_choices

_SET = "questions"
_OF_SPECS = ("datasets:", "systems:", "metrics:")


@dataclass(frozen=True)
class Subject:
    """What is audited: a spec with its plugins, or a dataset of a file, which has neither."""

    name: str
    datasets: Mapping[str, Dataset[Any]]
    spec: Spec | None = None
    parts: SpecPlugins | None = None

    def choose(self, wanted: Sequence[str]) -> Mapping[str, Dataset[Any]]:
        for name in wanted:
            if name not in self.datasets:
                hint = suggest(name, [*self.datasets]) or f"the spec has {list_choices([*self.datasets])}"
                raise UsageError(f"--dataset {name}: {hint}")
        return {name: one for name, one in self.datasets.items() if not wanted or name in wanted}


def open_subject(path: Path, overrides: Sequence[str], store: Path | None = None) -> Subject:
    """The datasets of a spec, or a dataset that is a file or a folder.

    `store` has the questions that a model wrote; by default it is the one beside the spec.
    """
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    if _is_spec(path):
        spec = load_chosen(path, overrides)
        folder = spec.folder / STORE if store is None else store
        kept = open_store(folder if folder.is_dir() else None)
        parts = build_parts(spec, answers=kept.answers, fingerprint=kept.fingerprint)
        return Subject(spec.name, parts.datasets, spec, parts)
    if overrides:
        raise UsageError(f"--set needs a spec, and {path} is a dataset")
    return Subject(path.name, {_SET: _build(path, _SET)})


def _is_spec(path: Path) -> bool:
    """Whether a file is YAML with a section of specs. Sets of questions can be YAML, too."""
    if path.suffix not in (".yaml", ".yml") or path.is_dir():
        return False
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    return not lines or any(line.startswith(_OF_SPECS) for line in lines)


def open_questions(dataset: Dataset[Any]) -> question_set.AuditedQuestions:
    """The questions of a dataset that an evaluation would ask: all of them, or the judged ones."""
    collection = dataset.open()
    if collection.queries is not None and collection.queries.height:
        queries = queries_to_ask(collection).queries
        assert queries is not None, "queries_to_ask refuses a collection without queries"
        asked = queries["query_id"].to_list()
    elif collection.qrels is not None and collection.qrels.height:
        asked = collection.qrels["query_id"].unique(maintain_order=True).to_list()
    else:
        raise DataError(f"dataset '{collection.name}' has neither questions nor judgements to audit")
    return question_set.read_questions(dataset, collection, asked)


def open_train(path: Path) -> question_set.AuditedQuestions:
    """The questions of a file that no spec declares, of a BEIR folder, or of a split of one (`qrels/train.tsv`)."""
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
    """Results of earlier evaluations, by the names that the user gave them; without any, why, and what to do."""

    opened: Sequence[NamedResults]
    why_none: str = ""

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.opened]

    @property
    def by_end(self) -> Iterator[tuple[str, Evaluation]]:
        """The evaluations, and what tells their systems apart: nothing if there is one."""
        for one in self.opened:
            yield f" ({one.name})" if len(self.opened) > 1 else "", one.evaluation


def find_results(spec: Spec, named: Sequence[str]) -> EarlierResults:
    """The results that are named; else the last results if they are of this spec, else its newest record."""
    distinct: dict[str | Path, str] = {}  # without those that an earlier name names: their systems would count twice
    for name in named:
        path = expand_home(name).resolve() if is_results(name) else None
        distinct.setdefault(name if path is None else path.parent if path.is_file() else path, name)
    if distinct:
        return EarlierResults([open_results(name) for name in distinct.values()])
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
    name = f"record {record.id[:8]}" if record.id else "the newest record"
    return EarlierResults([NamedResults(name, record.evaluation)])


def list_powers(spec: Spec, parts: SpecPlugins, found: EarlierResults, dataset: str) -> list[Power] | None:
    """What the questions of a dataset can show, from the first results; None without results of these questions.

    A drop that is larger than the range of the metric's values cannot be shown.
    """
    if not found.opened:
        return None
    try:
        rows = measure_power(spec, found.opened[0])
    except UsageError:
        return None
    powers = []
    for row in (row for row in rows if row.dataset == dataset):
        low, high = parts.metrics[row.metric].bounds
        drop = row.smallest_drop
        drop = None if drop is None or (high is not None and drop > high - low) else drop
        powers.append(Power(row.system, row.metric, row.baseline, row.queries, row.sd, drop, row.max_drop, row.needed))
    return powers


def measure(
    spec: Spec, parts: SpecPlugins, found: EarlierResults, dataset: str, wanted: str | None
) -> question_set.MetricValues | None:
    """The values of all systems on a dataset, of one metric; None if no system has values of such a metric.

    It is the wanted one, or the first of the spec whose values have a best and a worst.
    """
    known = [
        name
        for name, metric in parts.metrics.items()
        if metric.higher_is_better is not None and metric.bounds[1] is not None
    ]
    if wanted is not None and wanted not in known:
        raise UsageError(f"--metric {wanted}: {suggest(wanted, known) or f'write one of {list_choices(known)}'}")
    for name in known if wanted is None else [wanted]:
        columns: dict[str, dict[str, float]] = {}
        for end, evaluation in found.by_end:
            scored = evaluation.values.filter(dataset=dataset, metric=name, status="scored")
            for (system,), part in scored.group_by(["system"], maintain_order=True):
                columns[f"{system}{end}"] = dict(part.select("query_id", "value").iter_rows())
        if columns:
            return _orient(name, parts.metrics[name], columns, spec.diagnosis.wrong_below)
    return None


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
    """What the systems made of each question of a dataset; None without results of this dataset."""
    if not any(dataset in opened.evaluation.values["dataset"] for opened in found.opened):
        return None
    columns = ("dataset", "system", "query_id", "answer", "context_ids", "relevant")
    return question_set.read_outputs(
        (end, evaluation.select_samples(*columns).filter(dataset=dataset)) for end, evaluation in found.by_end
    )


_LOCAL = ("onnx", "sentence_transformers")
"""Models that run on this machine, so that asking them costs nothing."""
_BY_WORDS = "Compared by their words"


def find_meaning(parts: SpecPlugins | None, wanted: str | None) -> tuple[duplicates.Meaning | None, str]:
    """What compares the meaning of questions, or None, and a sentence about it.

    The model is the one that is named, else the first one of the spec that is local.

    A local model that cannot be opened is left out, with its reason; a model behind an endpoint is only asked if it
    is named.
    """
    models = {} if parts is None else dict(parts.models)
    known = {name: model for name, model in models.items() if isinstance(model, EmbeddingModel)}
    if wanted is not None and wanted not in known:
        hint = suggest(wanted, list(known)) or (f"it has {list_choices([*known])}" if known else "it has none")
        raise UsageError(f"--model {wanted}: the spec has no embedding model of this name; {hint}")
    name = wanted or next((name for name, model in known.items() if model.node.use in _LOCAL), None)
    if name is None:
        return None, f"{_BY_WORDS}; an embedding model in the spec also compares their meaning."
    model = known[name]
    try:
        model.prepare()
    except RagevalError as error:
        if wanted is not None:
            raise
        return None, f"{_BY_WORDS}, because the model '{name}' cannot be opened: {error}"

    meaning = (
        lambda texts: model.embed(texts, "query").vectors,
        lambda cosine: find_scale(model, "query", "query").find_cosine(cosine),
    )
    return meaning, f"{_BY_WORDS} and, with the model '{name}', by their meaning."


def audit_subject(
    path: Path,
    subject: Subject,
    opened: Mapping[str, question_set.AuditedQuestions],
    display: ProgressDisplay,
    *,
    results: Sequence[str],
    train: Path | None,
    documents: Path | None,
    metric: str | None,
    model: str | None,
    count: int,
    types: str | None,
    difficulties: str | None,
) -> Audit:
    """Make all checks of the opened datasets, as the command's options say."""
    spec, parts, found = subject.spec, subject.parts, EarlierResults([])
    if spec is not None:
        found = find_results(spec, results)
    for option, value in (("--metric", metric), ("--model", model)):
        if spec is None and value is not None:
            raise UsageError(f"{option} {value}: {path} is a dataset; {option} names a part of a spec")
    if spec is None and results:
        raise UsageError("--results needs a spec, which defines the metrics of the results")
    trained = None if train is None else open_train(train)
    meaning, compared = find_meaning(parts, model)
    sources = None if documents is None else read_documents(documents)
    audits = []
    for name, questions in opened.items():
        display.announce(f"audit {name}")
        dataset, every = subject.datasets[name], questions.questions
        powers, measured, outputs = None, None, None
        why = f"this needs results; audit a spec that has been evaluated with {PROGRAM} run"
        if spec is not None and parts is not None:
            powers = list_powers(spec, parts, found, name)
            measured, outputs = measure(spec, parts, found, name, metric), list_outputs(found, name)
            why = found.why_none or f"the results have no values of questions of '{name}'"
        lacking = "the results know no clusters or weights of the questions, which the spec has; evaluate it again"
        checks = (
            coverage.check_questions(questions),
            *duplicates.check_repeats(questions, meaning, compared),
            coverage.check_references(questions),
            coverage.check_gold(questions),
            coverage.check_judgements(questions),
            *([] if questions.collection.passages is None else [coverage.check_passages(questions)]),
            duplicates.check_leaks(questions),
            duplicates.check_overlap(questions, trained, str(train)),
            coverage.check_age(questions, dataset, sources),
            mix_and_size.check_languages(questions),
            mix_and_size.check_mix(questions, _want(mix_and_size.TYPE, types, questions)),
            mix_and_size.check_mix(questions, _want(mix_and_size.DIFFICULTY, difficulties, questions)),
            mix_and_size.check_size(questions, count, powers, lacking if found.opened else why),
            *_check_evaluated(questions, measured, outputs, why),
        )
        answered = sum(bool(question.references) for question in every)
        judged = sum(bool(question.relevant_ids) for question in every)
        origin = find_dataset_origin(dataset.node, questions.collection)
        described = "" if origin is None else origin.describe()
        audits.append(DatasetContent(name, len(every), answered, judged, described, checks))
    return Audit(subject.name, tuple(audits), tuple(found.names))


def _check_evaluated(
    questions: question_set.AuditedQuestions,
    measured: question_set.MetricValues | None,
    outputs: question_set.Outputs | None,
    why: str,
) -> Iterator[CheckContent]:
    """The checks of what results show; `why` there are none."""
    unjudged = item_analysis.check_unjudged
    yield unjudged.skip(why) if outputs is None else unjudged(questions, outputs)
    if measured is not None and len(measured.systems) > 1:
        yield item_analysis.check_failed(questions, measured, outputs or {})
        yield item_analysis.check_solved(questions, measured)
        yield item_analysis.check_discrimination(questions, measured)
        return
    if measured is not None:
        why = f"the results have one system, '{measured.systems[0]}'; this takes two or more"
    yield item_analysis.check_failed.skip(why)
    yield item_analysis.check_solved.skip(why)
    yield item_analysis.check_discrimination.skip(why)


def _want(wanted: WantedMix, text: str | None, questions: question_set.AuditedQuestions) -> WantedMix:
    """The wanted shares that an option gives. A name that no question has is a gap, unless it looks mistyped."""
    if text is None:
        return wanted
    known = dict.fromkeys([*wanted.shares, *read_values(questions, wanted.columns).values()])
    named = (part.partition(":")[0].strip() for part in text.lower().split(","))
    known |= {name: None for name in named if name and suggest(name, list(known)) is None}
    return wanted._replace(shares=read_shares(text.lower(), known, wanted.option), is_default=False)


def write_cleaned(
    subject: Subject, opened: Mapping[str, question_set.AuditedQuestions], audited: Audit, *, force: bool
) -> None:
    """Write a cleaned copy of each dataset that has rows to remove, and tell where it is."""
    copies = [clean(subject.datasets[one.name], opened[one.name], one) for one in audited.datasets]
    found = [one for one in copies if one is not None]
    there = next((path for one in found for path in one.files if path.exists() and not force), None)
    if there is not None:
        raise UsageError(f"{there} exists; move it away, or overwrite it with --force")
    for one in found:
        for path, content in one.files.items():
            console.write_file(path, content)
        console.tell(describe(one))
    if not found:
        console.tell("nothing to remove: no row is certainly too many")
