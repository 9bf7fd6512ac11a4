"""Checks that the blocks of a spec fit together, which no block can check by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.diagnostics import Diagnostic, FileFault, SpecError, suggest
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.pipeline.parts import Parts, build_parts
from rageval_spec.plugin import AnswerMetric, Dataset, Plugin
from rageval_spec.plugin.names import names_in
from rageval_spec.reading.mapping import MOST_SHOWN
from rageval_spec.spec import load
from rageval_spec.spec.designing import CLUSTER, WEIGHT, find_key
from rageval_spec.spec.nodes import Spec
from rageval_spec.spec.places import KeyPath
from rageval_spec.spec.slices import BUILT_IN_COLUMNS
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.plugin.file_reading import FileReading
    from rageval_spec.reading.production_mix import ProductionMix


def validate(path: Path, overrides: Sequence[str] = ()) -> Spec:
    """Load a spec and check that its blocks fit together. Reads no data except the names of columns.

    Raises:
        SpecError: the spec is wrong; it holds every diagnostic.
    """
    return inspect(path, overrides)[0]


def inspect(path: Path, overrides: Sequence[str] = ()) -> tuple[Spec, dict[str, list[FileReading]]]:
    """As `validate`. Also returns how the files of each dataset and system are read, by key: `datasets.golden`.

    Raises:
        SpecError: the spec is wrong; it holds every diagnostic.
    """
    spec = load(path, overrides=overrides)
    parts = build_parts(spec, budget=spec.limits.budget())
    warnings = check_wiring(spec, parts)
    readings = {".".join(map(str, key)): _describe_files(plugin) for key, plugin in _list_plugins(parts)}
    return replace(spec, warnings=(*spec.warnings, *warnings)) if warnings else spec, readings


def _describe_files(plugin: Plugin[Any]) -> list[FileReading]:
    try:
        return list(plugin.describe_files())
    except DataError:
        return []  # told when the file is read


def check_wiring(spec: Spec, parts: Parts) -> tuple[Diagnostic, ...]:
    """Let every plugin check the blocks and files that it names. Reads only as much of a file as shows its columns.

    Returns the warnings, in the order of the spec.

    Raises:
        SpecError: a plugin found a fault; it holds a diagnostic for each, at its place.
    """
    diagnostics = sorted(_find_faults(spec, parts), key=lambda fault: (fault.path, fault.position, fault.message))
    if any(fault.severity == "error" for fault in diagnostics):
        raise SpecError(diagnostics)
    return tuple(diagnostics)


def _find_faults(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    for path, plugin in _list_plugins(parts):
        try:
            fault = plugin.check()
        except RagevalError as error:
            fault = str(error)
        if fault is not None:
            yield spec.diagnose(path, fault, "wiring")
        yield from (_diagnose(spec, path, found) for found in plugin.check_files())
    list_columns = cache(partial(_list_all_columns, parts))
    for section, plugins in (("systems", parts.systems), ("judges", parts.judges)):
        for name, plugin in plugins.items():
            yield from (_diagnose(spec, (section, name), found) for found in plugin.check_columns(list_columns))
    yield from _find_unused_calibrations(spec, parts)
    yield from _find_label_faults(spec, parts)
    yield from _find_self_judging(spec, parts)
    yield from _find_unanswered(spec, parts)
    yield from _find_asked_sources(spec, parts)
    mixes, faults = _read_mixes(spec)
    yield from faults
    yield from _find_unknown_columns(spec, parts)
    yield from _find_unknown_design_columns(spec, parts, mixes)


def _diagnose(spec: Spec, path: KeyPath, found: FileFault) -> Diagnostic:
    return spec.diagnose((*path, *found.key), found.message, found.code, found.hint, found.severity)


def _find_unused_calibrations(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A diagnostic for each calibration that was made for other questions than the metrics put to its judge."""
    if all(judge.node.calibrated is None for judge in parts.judges.values()):
        return
    from rageval_spec.judging.calibrated import CalibratedJudge
    from rageval_spec.pipeline.judging import list_asked
    from rageval_spec.plugin.identity import digest_criterion

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
            yield spec.diagnose(("judges", judge, "calibration"), message, "calibration")


def _find_label_faults(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """What is wrong with the labels of metrics."""
    if any(metric.node.labels is not None for metric in parts.metrics.values()):
        from rageval_spec.pipeline.label_checks import find_label_faults

        yield from find_label_faults(spec, parts)


def _find_self_judging(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A warning for each judge whose model writes the answers. Reports also tell of models of one family."""
    if all(system.generator is None for system in parts.systems.values()):
        return
    from rageval_spec.pipeline.judging import find_self_judging

    with suppress(RagevalError):  # judges that do not exist are reported elsewhere
        for found in find_self_judging(parts):
            if found.kinship == "same":
                hint = "name a judge with another model, or compare it with people's labels: rageval-spec calibrate"
                path = ("systems", found.system, "generator")
                yield spec.diagnose(path, str(found), "self-judging", hint, "warning")


def _find_unanswered(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A diagnostic for each metric of answers, if every system of the spec only retrieves."""
    systems = parts.systems.values()
    is_asked = any(system.can_answer for system in systems)
    if any(system.writes_answers for system in systems):
        return
    for index, (name, metric) in enumerate(parts.metrics.items()):
        if isinstance(metric, AnswerMetric) and not (is_asked and "answer" not in metric.needs):
            message = f"{name} is a metric of answers, but no system of this spec answers"
            hint = "add a system with answers: {use: file, path: answers.jsonl}, or use http, python or command"
            yield spec.diagnose(("metrics", index), message, "wiring", hint)


def _find_asked_sources(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A diagnostic for each system that reads the run of one that is asked: its answers are new each time.

    A stored run would be taken for one of the latest answers.
    """
    for name, system in parts.systems.items():
        for source in names_in(system.node, "systems"):
            asked = parts.system(source)
            if asked.can_answer and asked.can_be_asked:
                message = f"'{name}' reads the run of '{source}', which is asked and gives no run that can be kept"
                hint = f"evaluate '{source}' by itself, or save its ranking in a file and name it with use: file"
                yield spec.diagnose(("systems", name), message, "wiring", hint)


def _find_unknown_columns(spec: Spec, parts: Parts) -> Iterator[Diagnostic]:
    """A diagnostic for each column of a metric or a slice that no dataset has.

    Columns of files that are too long to be read quickly are not judged.
    """
    of_slices = [(path, column) for path, column in _list_slice_columns(spec) if column not in BUILT_IN_COLUMNS]
    of_metrics = [*_list_metric_columns(parts)]
    if not of_slices and not of_metrics:
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
                yield spec.diagnose(path, f"{whose} column {column!r}", "columns", hint)


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


def _find_unknown_design_columns(spec: Spec, parts: Parts, mixes: Mapping[str, ProductionMix]) -> Iterator[Diagnostic]:
    """A diagnostic for each column of a cluster, a weight or a mix of production that its dataset does not have."""
    if not spec.designs:
        return
    from rageval_spec.reading.production_mix import SLICE

    found: dict[Diagnostic, None] = {}
    for name, node in spec.designs.items():
        if name not in parts.datasets:
            continue  # --only left it out
        present = _list_columns(parts.datasets[name])
        if present is None:
            continue
        known = [*present, *BUILT_IN_COLUMNS]
        for key, column in ((CLUSTER, node.cluster), (WEIGHT, node.weight)):
            if column is not None and column not in known:
                hint = suggest(column, known) or _describe_columns(present, ())
                message = f"the questions of '{name}' have no column {column!r}"
                found[spec.diagnose(find_key(spec.places, key, name), message, "columns", hint)] = None
        for column in mixes[name].columns if name in mixes else ():
            if column != SLICE and column not in known:
                hint = suggest(column, known) or _describe_columns(present, ())
                message = f"the questions of '{name}' have no column {column!r}"
                found[mixes[name].diagnose_header(column, message, hint)] = None
        if name in mixes and SLICE in mixes[name].columns and not spec.slices:
            message = "the column 'slice' names slices, but the spec has no 'slices:'"
            found[mixes[name].diagnose_header(SLICE, message, "add them, or name a column of the questions")] = None
    yield from found


def _describe_columns(known: Sequence[str], others: Sequence[str]) -> str:
    """What a block can name instead; `others` is what it can use besides the columns of the files."""
    if known:
        more = ", ..." if len(known) > MOST_SHOWN else ""
        return f"the columns are {', '.join(map(repr, known[:MOST_SHOWN]))}{more}"
    return f"slices can use {', '.join(others)}" if others else "add it to the file with the questions"


def _list_all_columns(parts: Parts) -> list[str] | None:
    """The columns of the questions of all datasets; None if those of one cannot be found quickly."""
    present = [_list_columns(dataset) for dataset in parts.datasets.values()]
    if any(columns is None for columns in present):
        return None
    return [*dict.fromkeys(name for columns in present for name in columns or ())]


def _list_columns(dataset: Dataset[Any]) -> Sequence[str] | None:
    try:
        return dataset.list_other_columns()
    except DataError:
        return None


def _list_metric_columns(parts: Parts) -> Iterator[tuple[KeyPath, str]]:
    for index, metric in enumerate(parts.metrics.values()):
        for key, column in metric.question_columns():
            yield ("metrics", index, *key), column


def _list_slice_columns(spec: Spec) -> Iterator[tuple[KeyPath, str]]:
    for index, entry in enumerate(spec.slices):
        if entry.by is not None:
            yield ("slices", index, "by"), entry.by
        for place, condition in enumerate(entry.conditions):
            where: KeyPath = ("where", place) if isinstance(entry.where, tuple) else ("where",)
            yield ("slices", index, *where, "column"), condition.column


def _list_plugins(parts: Parts) -> Iterator[tuple[KeyPath, Plugin[Any]]]:
    named: Mapping[str, Mapping[str, Plugin[Any]]] = {
        "datasets": parts.datasets,
        "systems": {**parts.sources, **parts.systems},
        "models": parts.models,
        "judges": parts.judges,
        "labels": parts.labels,
    }
    for section, plugins in named.items():
        yield from (((section, name), plugin) for name, plugin in plugins.items())
    yield from ((("metrics", index), metric) for index, metric in enumerate(parts.metrics.values()))
