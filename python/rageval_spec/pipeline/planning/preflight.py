"""Checks that the blocks of a spec fit together, which no block can check by itself.

This includes people's labels: which belong to which metric, and what is wrong with them, as far as it shows before
anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.chat import Kinship, compare_models
from rageval_spec.data.outcomes import FEWEST_LABELS
from rageval_spec.diagnostics import Diagnostic, FileFault, SpecError, suggest
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.pipeline.planning.default_model import choose_default_model
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins, build_parts
from rageval_spec.plugin import AnswerMetric, Judge, Labels, Metric, Plugin, RankingMetric, System
from rageval_spec.plugin.block_names import names_in
from rageval_spec.reading.column_names import may_be_gold
from rageval_spec.reading.missing_columns import write_mapping
from rageval_spec.recorded.json_path import MOST_SHOWN
from rageval_spec.spec import load
from rageval_spec.spec.blocks.question_weights import CLUSTER, WEIGHT, WEIGHTS, find_key
from rageval_spec.spec.blocks.slices import BUILT_IN_COLUMNS
from rageval_spec.spec.blocks.spec_node import DEFAULT_IDS, NAMED_SECTIONS, Spec
from rageval_spec.spec.text.places import KeyPath
from rageval_spec.statistics.mean_intervals import RANGE_ADVICE, lacks_range
from rageval_spec.wording import count_noun, list_choices, list_names, list_some

if TYPE_CHECKING:
    from rageval_spec.data.labels import Label, LabelScale
    from rageval_spec.data.samples import Part
    from rageval_spec.plugin.plugin import FileReading
    from rageval_spec.reading.production_mix import ProductionMix


def inspect(path: Path, overrides: Sequence[str] = ()) -> tuple[Spec, dict[str, list[FileReading]]]:
    """Load a spec and check that its blocks fit together. Reads no data except the names of columns.

    Also returns how the files of each dataset and system are read, by key: `datasets.golden`. Raises `SpecError` with
    every diagnostic if the spec is wrong.
    """
    spec = load(path, overrides=overrides)
    budget = spec.limits.budget()
    if spec.monitor is not None and budget.max_cost is None:
        budget.max_cost = spec.monitor.budget.most_cost
    # A calibration fits the model that `run` would choose.
    is_calibrated = any(judge.calibrated is not None for judge in spec.judges.values())  # type: ignore[attr-defined]
    asked = choose_default_model(spec).spec if is_calibrated else spec
    parts = build_parts(asked, budget=budget)
    warnings = check_wiring(asked, parts)
    readings = {".".join(map(str, key)): _describe_files(plugin) for key, plugin in _list_plugins(parts)}
    return replace(spec, warnings=(*spec.warnings, *warnings)) if warnings else spec, readings


def _describe_files(plugin: Plugin[Any]) -> list[FileReading]:
    try:
        return list(plugin.describe_files())
    except DataError:
        return []  # told when the file is read


def check_wiring(spec: Spec, parts: SpecPlugins, *, asks_questions: bool = True) -> tuple[Diagnostic, ...]:
    """Let every plugin check the blocks and files that it names. Of long files, it reads what shows their columns.

    Returns the warnings, in the order of the spec; raises `SpecError` with a diagnostic for each fault, at its place.
    With `asks_questions`, the questions of its datasets are evaluated, which must then have what metrics need.
    """
    faults = [*_find_faults(spec, parts)]
    is_unclear = any(
        fault.severity == "error" and fault.code in ("unclear-columns", "unreadable-data") for fault in faults
    )
    if asks_questions and not is_unclear:
        faults += [*_find_unmet_needs(spec, parts), *_find_own_answers(spec, parts)]
    diagnostics = sorted(faults, key=lambda fault: (fault.path, fault.position, fault.message))
    if any(fault.severity == "error" for fault in diagnostics):
        raise SpecError(diagnostics)
    return tuple(diagnostics)


def _find_faults(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    for path, plugin in _list_plugins(parts):
        try:
            fault = plugin.check()
        except RagevalError as error:
            fault = str(error)
        if fault is not None:
            yield spec.diagnose(path, fault, "incompatible-parts")
        yield from (_diagnose(spec, path, found) for found in plugin.check_files())
    list_columns = cache(partial(_list_all_columns, parts))
    for section, plugins in (("systems", parts.systems), ("judges", parts.judges)):
        for name, plugin in plugins.items():
            yield from (_diagnose(spec, (section, name), found) for found in plugin.check_columns(list_columns))
    for find in (
        _find_unused_calibrations, _find_label_faults, _find_self_judging, _find_shared_models, _find_undecidable,
        _find_unanswered, _find_asked_sources, _find_unknown_columns, _find_unrepeated,
    ):  # fmt: skip
        yield from find(spec, parts)
    mixes, faults = _read_mixes(spec)
    yield from (*faults, *_find_unknown_design_columns(spec, parts, mixes))


def _diagnose(spec: Spec, path: KeyPath, found: FileFault) -> Diagnostic:
    return spec.diagnose((*path, *found.key), found.message, found.code, found.hint, found.severity)


def _find_unused_calibrations(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each calibration that was made for other questions than the metrics put to its judge."""
    if all(judge.node.calibrated is None for judge in parts.judges.values()):
        return
    from rageval_spec.judging.calibrated_judge import CalibratedJudge
    from rageval_spec.plugin.judge_identity import digest_criterion

    calibrated = {name: judge for name, judge in parts.judges.items() if isinstance(judge, CalibratedJudge)}
    asked: dict[str, list[str]] = {}
    for name, metric in parts.answer_metrics.items():
        try:
            reached = calibrated.keys() & list_asked(metric.judges())
            wanted = {digest_criterion(criterion) for criterion in metric.criteria()}
            unfit = [judge for judge in reached if not wanted & calibrated[judge].entries.keys()]
        except RagevalError:
            return  # a diagnostic of its own
        for judge in reached:
            asked.setdefault(judge, []).extend([name] if judge in unfit else [""])
    for judge, metrics in asked.items():
        if all(metrics):
            made = list_names(sorted({entry.metric for entry in calibrated[judge].entries.values()}))
            message = f"the calibration was made for {made}, but here '{judge}' judges {list_names(metrics)}"
            yield spec.diagnose(("judges", judge, "calibration"), message, "unusable-calibration")


def _find_self_judging(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A warning for each judge whose model writes the answers. Reports also tell of models of one family."""
    with suppress(RagevalError):  # judges that do not exist are reported elsewhere
        for found in find_self_judging(parts):
            if found.kinship == "same":
                hint = "name a judge with another model, or compare it with people's labels: rageval-spec calibrate"
                path = ("systems", found.system, "generator")
                yield spec.diagnose(path, str(found), "self-judging", hint, "warning")


def _find_shared_models(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A warning for each metric or judge that measures with a model by which a system retrieves or ranks documents."""
    retrieving: dict[str, list[str]] = {}
    for name, system in parts.systems.items():
        for model in _list_ranking_models(parts, system):
            retrieving.setdefault(_identify_model(parts, model), []).append(name)
    if not retrieving:
        return
    with suppress(RagevalError):  # judges that do not exist are reported elsewhere
        asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
        measuring: dict[KeyPath, tuple[str, Plugin[Any]]] = {
            ("judges", name): (f"the judge '{name}'", judge) for name, judge in parts.judges.items() if name in asked
        }
        measuring |= {("metrics", index): named for index, named in enumerate(parts.metrics.items())}
        for path, (who, plugin) in measuring.items():
            for model in names_in(plugin.node, "models"):
                if systems := retrieving.get(_identify_model(parts, model)):
                    rank = list_names([f"'{name}'" for name in systems]) + (" ranks" if len(systems) == 1 else " rank")
                    message = (
                        f"{who} measures with {_name_model(parts, model)}, by which {rank} documents: what that model "
                        "takes for near counts as good, so the score rates the retriever by its own yardstick"
                    )
                    hint = "name another model here, or rate retrieval by judged documents: ndcg@10, recall@10"
                    yield spec.diagnose(path, message, "shared-model", hint, "warning")


def _find_undecidable(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A warning for each gate that cannot pass, because it decides by an interval of values without a range."""
    for index, gate in enumerate(spec.gates):
        metric = parts.metrics.get(gate.metric)
        if gate.need is not None and metric is not None and lacks_range(metric, metric.statistic):
            unknown = f"the lowest and highest value of '{gate.metric}' are not known"
            message = f"the gate cannot pass by '{gate.need}': {unknown}"
            path = ("gates", index, gate.need.partition(":")[0])
            yield spec.diagnose(path, message, "no-range", RANGE_ADVICE, "warning")


def _list_ranking_models(parts: SpecPlugins, system: System[Any]) -> Iterator[str]:
    """The models of a system, and of those whose runs it reads, as a hybrid does."""
    yield from names_in(system.node, "models")
    for name in names_in(system.node, "systems"):
        yield from _list_ranking_models(parts, parts.system(name))


def _identify_model(parts: SpecPlugins, name: str) -> str:
    """What tells a model apart from others: its folder, or its name without its owner; not how precisely it runs."""
    model = parts.models.get(name)
    called = _name_model(parts, name)
    if model is not None and (folder := model.context.resolve(called)).exists():
        return str(folder.resolve())
    plain = called.rpartition("/")[2].casefold()
    return DEFAULT_IDS.get(plain, plain)


def _find_unanswered(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each metric of answers, if every system of the spec only retrieves."""
    systems = parts.systems.values()
    is_asked = any(system.can_answer for system in systems)
    if any(system.writes_answers for system in systems):
        return
    for index, (name, metric) in enumerate(parts.metrics.items()):
        if isinstance(metric, AnswerMetric) and not (is_asked and "answer" not in metric.needs):
            message = f"{name} is a metric of answers, but no system of this spec answers"
            hint = "add a system with answers: {use: file, path: answers.jsonl}, or use http, python or command"
            yield spec.diagnose(("metrics", index), message, "incompatible-parts", hint)


def _find_unrepeated(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each system that cannot be asked the same question several times."""
    for name, system in parts.systems.items() if spec.repeat > 1 else ():
        has_repeats = system.can_be_asked or system.node.use == "file"  # whose rows of one question are its repeats
        if not has_repeats or not all(map(system.answers_on, parts.datasets)):
            message = f"'repeat' asks each question {spec.repeat} times, but '{name}' gives the same result each time"
            yield spec.diagnose(("systems", name), message, "incompatible-parts", "remove the system, or 'repeat'")


_OF_QUESTIONS: Mapping[Part, str] = {
    "reference": "a gold answer",
    "reference_contexts": "reference contexts",
    "relevant": "relevant documents",
    "answerable": "a value that shows whether it can be answered",
    "group": "a group of questions that ask the same",
    "condition": "a condition",
    "nuggets": "nuggets",
}
"""The parts of samples that come from the questions, and what a question has then."""


def _find_unmet_needs(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each metric that needs what no question of any dataset has."""
    needed = {name: _list_needs(metric) for name, metric in parts.metrics.items()}
    if not any(needed.values()):
        return
    try:
        found = {name: dataset.find_parts() for name, dataset in parts.datasets.items()}
    except DataError:
        return  # a diagnostic of its own
    if not found or any(filled is None for filled in found.values()):
        return
    filled = {part for one in found.values() for part in one or ()}
    whose = f"of '{next(iter(found))}'" if len(found) == 1 else "of any dataset"
    for index, (name, needs) in enumerate(needed.items()):
        lacking = next((part for part in needs if part not in filled), None)
        if lacking is not None:
            has = "has any" if lacking in ("relevant", "reference_contexts", "nuggets") else "has one"
            message = f"{name} needs {_OF_QUESTIONS[lacking]}, and no question {whose} {has}"
            yield spec.diagnose(("metrics", index), message, "unclear-columns", _advise_need(parts, lacking))


def _list_needs(metric: Metric[Any]) -> list[Part]:
    if isinstance(metric, AnswerMetric):
        return [part for part in _OF_QUESTIONS if part in metric.needs]
    return ["relevant"] if metric.group == "ranking" else []


def _advise_need(parts: SpecPlugins, lacking: Part) -> str:
    """What to write where a part is missing: the column that may have it, if its name says so."""
    name, dataset = next(iter(parts.datasets.items()))
    present = _gather([dataset.list_other_columns]) or ()
    likely = next((column for column in present if may_be_gold(column)), None) if lacking == "reference" else None
    if likely is not None:
        return f"under 'datasets.{name}' write {write_mapping(('columns',), {'reference': likely})}"
    if lacking == "nuggets":
        return f"name a file in 'datasets.{name}.nuggets', or give the questions a column 'nuggets'"
    return f"name the column in 'datasets.{name}.columns.{lacking}', or remove the metric"


def _find_own_answers(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each system whose answers are read from the column that has the gold answers of a dataset.

    A system that names the column means it.
    """
    if not any("reference" in _list_needs(metric) for metric in parts.metrics.values()):
        return
    files = {file.path for dataset in parts.datasets.values() for file in dataset.inputs()}
    for name, system in parts.systems.items():
        for dataset_name, dataset in parts.datasets.items():
            if not files & {file.path for file in system.inputs_for(dataset_name)}:
                continue
            gold, said = (
                {(plugin.context.resolve(one.file), one.columns.get(part)) for one in _describe_files(plugin)}
                for plugin, part in ((dataset, "reference"), (system, "answer"))
            )
            for path, column in gold & said:
                if column is not None and system.node.columns.answer is None:
                    message = (
                        f"the answers are read from '{column}' of {path.name}, which '{dataset_name}' takes for the "
                        "gold answers: every answer would be right"
                    )
                    hint = (
                        "name the column of the gold answers in 'columns.reference' of the dataset, or the column of "
                        "the answers in 'columns.answer' of the system"
                    )
                    yield spec.diagnose(("systems", name), message, "unclear-columns", hint)


def _find_asked_sources(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each system that reads the run of one that is asked: its answers are new each time.

    A stored run would be taken for one of the latest answers.
    """
    for name, system in parts.systems.items():
        for source in names_in(system.node, "systems"):
            asked = parts.system(source)
            if asked.can_answer and asked.can_be_asked:
                message = f"'{name}' reads the run of '{source}', which is asked and gives no run that can be kept"
                hint = f"evaluate '{source}' by itself, or save its ranking in a file and name it with use: file"
                yield spec.diagnose(("systems", name), message, "incompatible-parts", hint)


def _find_unknown_columns(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """A diagnostic for each column of a metric or a slice that no dataset has.

    Columns of files that are too long to be read quickly are not judged.
    """
    of_slices = [(path, column) for path, column in _list_slice_columns(spec) if column not in BUILT_IN_COLUMNS]
    of_metrics, of_answers = _list_metric_columns(parts, False), _list_metric_columns(parts, True)
    if not (of_slices or of_metrics or of_answers):
        return
    known = _list_all_columns(parts)
    if known is None:
        return
    of = next(iter(parts.datasets)) if len(parts.datasets) == 1 else ""
    for wanted, others in ((of_metrics, ()), (of_slices, BUILT_IN_COLUMNS)):
        for path, column in wanted:
            if column not in known:
                whose = f"the questions of '{of}' have no" if of else "no dataset has a"
                hint = suggest(column, [*known, *others]) or _describe_columns(known, others)
                yield spec.diagnose(path, f"{whose} column {column!r}", "unclear-columns", hint)
    recorded = _gather(system.list_answer_columns for system in parts.systems.values()) if of_answers else None
    if recorded is None:
        return
    every = [*dict.fromkeys((*known, *recorded))]
    for path, column in of_answers:
        if column not in every and column.partition(".")[0] not in every:
            whose = "neither the questions nor the recorded answers have a" if recorded else "the questions have no"
            hint = suggest(column, every) or _describe_columns(every, ())
            yield spec.diagnose(path, f"{whose} column {column!r}", "unclear-columns", hint)


def _gather(listings: Iterable[Callable[[], Sequence[str] | None]]) -> list[str] | None:
    """The distinct names of columns that several plugins list; None if one cannot list its own quickly."""
    names: dict[str, None] = {}
    for list_columns in listings:
        try:
            found = list_columns()
        except DataError:  # a diagnostic of its own
            return None
        if found is None:
            return None
        names |= dict.fromkeys(found)
    return [*names]


def _read_mixes(spec: Spec) -> tuple[dict[str, ProductionMix], list[Diagnostic]]:
    """The mix of production of each dataset that has one, and what is wrong in the files."""
    if all(node.weights is None for node in spec.designs.values()):
        return {}, []
    from rageval_spec.reading.production_mix import DATASET, read_mix

    mixes: dict[str, ProductionMix] = {}
    faults: dict[Diagnostic, None] = {}
    for dataset, node in spec.designs.items():
        try:
            if node.weights is not None:
                mixes[dataset] = read_mix(spec.folder / node.weights)
        except SpecError as error:
            faults |= dict.fromkeys(error.diagnostics)
    named = {path[1] for path in spec.places if len(path) == 2 and path[0] == "datasets"} | {*spec.datasets}
    for mix in {mix.path: mix for mix in mixes.values()}.values():
        for row in mix.rows:
            if row.dataset is not None and row.dataset not in named:
                hint = suggest(row.dataset, sorted(map(str, named)))
                message = f"the spec has no dataset {row.dataset!r}"
                faults[mix.diagnose(row.line, DATASET, message, hint)] = None
    return mixes, [*faults]


def _find_unknown_design_columns(
    spec: Spec, parts: SpecPlugins, mixes: Mapping[str, ProductionMix]
) -> Iterator[Diagnostic]:
    """A diagnostic for each column of a cluster, a weight or a mix of production that its dataset does not have."""
    if not spec.designs:
        return
    from rageval_spec.reading.production_mix import SLICE

    found: dict[Diagnostic, None] = {}
    for name, node in spec.designs.items():
        if name not in parts.datasets:
            continue  # --only left it out
        present = _gather([parts.datasets[name].list_other_columns])
        if present is None:
            continue
        known = [*present, *BUILT_IN_COLUMNS]
        wanted = [(CLUSTER, node.cluster), (WEIGHT, node.weight)]
        wanted += [(WEIGHTS, column) for column in (mixes[name].columns if name in mixes else ()) if column != SLICE]
        for key, column in wanted:
            if column is not None and column not in known:
                hint = suggest(column, known) or _describe_columns(present, ())
                message = f"the questions of '{name}' have no column {column!r}"
                if key == WEIGHTS:
                    found[mixes[name].diagnose_header(column, message, hint)] = None
                else:
                    found[spec.diagnose(find_key(spec.places, key, name), message, "unclear-columns", hint)] = None
        if name in mixes and SLICE in mixes[name].columns and not spec.slices:
            message = "the column 'slice' names slices, but the spec has no 'slices:'"
            found[mixes[name].diagnose_header(SLICE, message, "add them, or name a column of the questions")] = None
    yield from found


def _describe_columns(known: Sequence[str], others: Sequence[str]) -> str:
    """What a block can name instead; `others` is what it can use besides the columns of the files."""
    if known:
        return f"the columns are {list_some(known, MOST_SHOWN)}"
    return f"slices can use {', '.join(others)}" if others else "add it to the file with the questions"


def _list_all_columns(parts: SpecPlugins) -> list[str] | None:
    """The columns of the questions of all datasets; None if those of one cannot be found quickly."""
    return _gather(dataset.list_other_columns for dataset in parts.datasets.values())


def _list_metric_columns(parts: SpecPlugins, reads_answer_columns: bool) -> list[tuple[KeyPath, str]]:
    return [
        (("metrics", index, *key), column)
        for index, metric in enumerate(parts.metrics.values())
        if metric.reads_answer_columns == reads_answer_columns
        for key, column in metric.question_columns()
    ]


def _list_slice_columns(spec: Spec) -> Iterator[tuple[KeyPath, str]]:
    for index, entry in enumerate(spec.slices):
        if entry.by is not None:
            yield ("slices", index, "by"), entry.by
        for place, condition in enumerate(entry.conditions):
            where: KeyPath = ("where", place) if isinstance(entry.where, tuple) else ("where",)
            yield ("slices", index, *where, "column"), condition.column


def _list_plugins(parts: SpecPlugins) -> Iterator[tuple[KeyPath, Plugin[Any]]]:
    for section in NAMED_SECTIONS:
        plugins = {**(parts.sources if section == "systems" else {}), **getattr(parts, section)}
        yield from (((section, name), plugin) for name, plugin in plugins.items())
    yield from ((("metrics", index), metric) for index, metric in enumerate(parts.metrics.values()))


_SCALE = "scale: [1, 5]"


def list_labelled(metrics: Mapping[str, Metric[Any]]) -> dict[str, Metric[Any]]:
    return {name: metric for name, metric in metrics.items() if metric.node.labels is not None}


def choose_labels(labels: Sequence[Label], name: str, word: str) -> list[Label]:
    """The labels of a metric: those that name it as tables do; else by its word; and those that name no metric."""
    criterion = name if any(label.metric == name for label in labels) else word
    return [label for label in labels if label.metric in ("", criterion)]


def _find_label_faults(spec: Spec, parts: SpecPlugins) -> Iterator[Diagnostic]:
    """What is wrong with the labels of metrics, as far as it shows before anything is asked or paid for."""
    places = {metric.name: index for index, metric in enumerate(spec.metrics)}
    for name, metric in list_labelled(parts.metrics).items():
        path = ("metrics", places[name], "labels")
        source = parts.labels.get(str(metric.node.labels))  # another check reports a dangling reference
        found: tuple[str, str | None] | None = _find_misuse(spec, metric, source)
        if found is None and source is not None:
            with suppress(DataError, OSError):  # `check_files` reports it
                found = _find_fault(source.read(), metric, name, source.scale, parts)
        if found is not None:
            yield spec.diagnose(path, found[0], "unusable-labels", found[1])


def _find_misuse(spec: Spec, metric: Metric[Any], source: Labels[Any] | None) -> tuple[str, str] | None:
    remove = "remove 'labels:'"
    is_ranking = isinstance(metric, RankingMetric) and type(metric).unscorable is RankingMetric.unscorable
    if not isinstance(metric, AnswerMetric) and not is_ranking:
        return f"{metric.node.use} is not a metric of answers, so people's labels cannot correct it", remove
    if source is not None and source.of_pairs != is_ranking:
        wanted = "pairs of a query and a document ('use: qrels')" if is_ranking else "answers (not 'use: qrels')"
        return f"{metric.node.use} needs labels of {wanted}, and '{metric.node.labels}' has others", remove
    if is_ranking and metric.node.correction != "ppi":
        return "'correction' is for labels of answers; those of pairs have one method", "remove 'correction:'"
    if metric.statistic != "mean":
        return f"labels correct means, and {metric.name} is the {metric.statistic} of its values", remove
    if metric.bounds[1] is None:
        return f"{metric.name} has no highest value, so labels cannot be put on its scale", remove
    if spec.stopping is not None:
        message = "'stopping' decides by the judge's values alone, which 'labels' correct"
        return message, "remove 'labels:' or 'stopping:'"
    return None


def _find_fault(
    labels: Sequence[Label], metric: Metric[Any], name: str, scale: LabelScale, parts: SpecPlugins
) -> tuple[str, str | None] | None:
    """Why labels cannot correct a metric, and what to do."""
    from rageval_spec.data.labels import average_labels

    own = choose_labels(labels, name, metric.node.use)
    source = f"'{metric.node.labels}'"
    if not own:
        criteria = [*dict.fromkeys(label.metric for label in labels)]
        return (
            f"no label of {source} is about {name}; they are about {list_choices(criteria)}",
            f"write the metric's name into the labels, or name the metric as they do: 'as: {criteria[0]}'",
        )
    whole = [label for label in own if label.claim is None]
    if not whole:
        return f"all labels of {source} are of claims; a mean needs labels of whole answers", "label whole answers"
    noun = "pair" if whole[0].document else "answer"
    if len({label.item for label in whole}) < FEWEST_LABELS:
        count = count_noun(len({label.item for label in whole}), noun)
        return (
            f"{source} has labels of only {count} for {name}; a corrected mean needs at least {FEWEST_LABELS}",
            f"label more {noun}s, or remove 'labels:' to see the judge's own mean",
        )
    answering = [name for name, system in parts.systems.items() if system.can_answer and noun == "answer"]
    for part, names in (("dataset", [*parts.datasets]), ("system", answering)):
        lacking = next((label for label in whole if not getattr(label, part)), None)
        if len(names) > 1 and lacking is not None:
            told = f"{lacking.place}: the label does not name its {part}, and there are several: {', '.join(names)}"
            return told, f"add a column '{part}'"
    try:
        for label in whole if noun == "answer" else ():
            average_labels([label], scale, _SCALE)
    except DataError as error:
        return str(error), None
    return None


class SelfJudging(NamedTuple):
    """Judges whose model is the one that wrote the answers, or of the same family.

    Attributes:
        system, judges: their names in the spec.
        generator, model: what the models are called.
    """

    system: str
    generator: str
    judges: tuple[str, ...]
    model: str
    kinship: Kinship

    def __str__(self) -> str:
        if self.kinship == "same":
            how = f"{self.model}, the model that writes the answers of '{self.system}'"
        else:
            how = f"{self.model}, a model of the same family as {self.generator}, which writes those of '{self.system}'"
        names = list_names([f"'{judge}'" for judge in self.judges])
        who = f"the judge {names} asks" if len(self.judges) == 1 else f"the judges {names} ask"
        return f"{who} {how}; models favour answers like their own"


def find_self_judging(parts: SpecPlugins) -> Iterator[SelfJudging]:
    """The judges behind metrics whose model is related to the generator of a system, in the order of the spec."""
    generators = [(name, one.generator) for name, one in parts.systems.items() if one.generator is not None]
    if not generators:
        return
    asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
    judges: dict[str, list[str]] = {}
    for name, judge in parts.judges.items():
        for model in dict.fromkeys(_name_model(parts, model) for model in names_in(judge.node, "models")):
            if name in asked:
                judges.setdefault(model, []).append(name)
    for system, generator in generators:
        own = _name_model(parts, generator)
        for model, names in judges.items():
            if kinship := compare_models(own, model):
                yield SelfJudging(system, own, tuple(names), model, kinship)


def find_relatives(parts: SpecPlugins, judge: Judge[Any]) -> Iterator[str]:
    """A warning for each system that ranks or writes by the judge's model, or by one of its family.

    Judges favour rankers that are built on their own model (Clarke and Dietz, LLM-based relevance assessment still
    can't replace human relevance assessment, 2024, arXiv:2412.17156).
    """
    asked = [one for name in sorted(list_asked([judge])) for one in names_in(parts.judges[name].node, "models")]
    for name, system in parts.systems.items():
        used = (*_list_ranking_models(parts, system), *filter(None, [system.generator]))
        pairs = ((_name_model(parts, one), _name_model(parts, other)) for one in used for other in asked)
        if found := next((pair for pair in pairs if compare_models(*pair)), None):
            told = f"the judge '{judge.context.name}' asks {found[1]}, and '{name}' works with {found[0]}, of the same "
            yield f"{told}family: judges favour what such systems rank first; compare the judge with people's labels"


def _name_model(parts: SpecPlugins, name: str) -> str:
    return parts.models[name].called if name in parts.models else name


def list_asked(judges: Iterable[Judge[Any]]) -> set[str]:
    """The names of judges, and of those that they ask in turn."""
    waiting, asked = list(judges), set[str]()
    while waiting:
        judge = waiting.pop()
        if judge.context.name not in asked:
            asked.add(judge.context.name)
            waiting += [judge.context.judge(name) for name in names_in(judge.node, "judges")]
    return asked
