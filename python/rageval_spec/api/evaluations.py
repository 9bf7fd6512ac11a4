"""`rageval_spec.run` and `rageval_spec.judge`: evaluations from Python.

`run` does what `rageval-spec run` does, and returns the evaluation. `judge` computes metrics of answers that a
program already has, without a spec. What it is given (dicts, a frame, objects of other libraries) becomes the rows of
a question file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.api.finished_evaluation import FinishedEvaluation
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SampleTable
from rageval_spec.diagnostics import Diagnostic, SpecError
from rageval_spec.errors import DataError, RagevalError, RagevalWarning, UsageError
from rageval_spec.metrics.shared.judged_metrics import JudgedMetric
from rageval_spec.pipeline.planning.plan import SystemFailure
from rageval_spec.pipeline.planning.spec_selection import check_patterns
from rageval_spec.plugin import Context
from rageval_spec.reading.column_names import ANSWERS
from rageval_spec.reading.missing_columns import NO_ANSWERS
from rageval_spec.runner import Options, RunOutcome
from rageval_spec.runner import run as run_spec
from rageval_spec.spec import Spec, load, load_dict
from rageval_spec.spec.overrides import ARGUMENT, Overrides

StorePlace = str | Path | Literal["beside"] | None


def run(
    spec: str | Path | Mapping[str, Any],
    *,
    limit: int | None = None,
    only: str | Sequence[str] = (),
    overrides: Overrides | None = None,
    folder: str | Path | None = None,
    output: str | Path | None = None,
    store: StorePlace = "beside",
    save_as: str | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    retry_errors: bool = False,
    record: bool = True,
    quiet: bool = False,
) -> FinishedEvaluation:
    """Evaluate a spec. A gate that fails does not raise: look at `.passed`.

    It works in threads, in a notebook and inside a running event loop (which it blocks: in async code, call it with
    `asyncio.to_thread`). Ctrl-C ends it; what models answered until then is stored.

    Args:
        spec: the spec's file, or a dict with the content that the file would have.
        limit: evaluate only the first `limit` queries of each dataset.
        only: names or patterns of the datasets, systems and metrics to evaluate: "bm25", "ndcg*".
        overrides: values that replace those of the spec, `{"systems.bm25.k1": 0.9}`, or a list of texts,
            `["systems.bm25.k1=0.9"]`.
        folder: where the relative paths of a dict start; the current folder by default. A file's start at its folder.
        output: the folder for the spec's reports; by default no report is made.
        store: the folder of the store; "beside" is `.rageval/store` beside the spec, as on the command line. None
            stores nothing and uses nothing that is stored.
        save_as: the label under which gates of later evaluations find this one, unless something failed.
        retry_failed: ask again only what failed in the last evaluation; all else is taken over from it.
        fresh: ask all questions again, also after an evaluation that was interrupted.
        retry_errors: the earlier name of `retry_failed`, for this release.
        record: record the evaluation in the spec's history, by default `.rageval/history.db` next to the spec.
        quiet: show no progress on standard error.

    Raises:
        SpecError: the spec is wrong; its text shows every diagnostic.
        UsageError: an argument is wrong.
        RagevalError: a dataset cannot be read, or the store cannot be written.
    """
    number, patterns = _check_limit(limit), _check_only(only)
    loaded = _load(spec, folder, _check_overrides(overrides))
    check_patterns(loaded, patterns, "only='{}'")
    options = Options(
        limit=number,
        only=patterns,
        output=None if output is None else Path(output),
        save_as=save_as,
        quiet=quiet,
        retry_failed=_check_retry(retry_failed, retry_errors, fresh),
        fresh=fresh,
        no_history=not record,
        **choose_store(store),
    )
    return wrap(run_spec(loaded, options))


def _check_retry(retry_failed: bool, retry_errors: bool, fresh: bool) -> bool:
    if retry_errors:
        message = "retry_errors is now retry_failed; the next release knows only the new name"
        warnings.warn(message, RagevalWarning, stacklevel=3)
    if fresh and (retry_failed or retry_errors):
        raise UsageError("fresh asks everything again and retry_failed only what failed; leave one of them out")
    return retry_failed or retry_errors


def wrap(outcome: RunOutcome) -> FinishedEvaluation:
    """What the runner returned, in the form that callers get. A record that was not written draws a warning."""
    if outcome.unrecorded is not None:
        warnings.warn(outcome.unrecorded, RagevalWarning, stacklevel=3)
    return FinishedEvaluation(
        outcome.evaluation,
        warnings=outcome.warnings,
        spent=outcome.spent.describe() if outcome.spent.calls else "",
        written=outcome.written,
        lost_reports=map(str, outcome.lost_reports),
    )


def choose_store(store: StorePlace) -> dict[str, Any]:
    """The runner's options for a store."""
    return {"store": None if store in ("beside", None) else Path(str(store)), "no_store": store is None}


def _load(spec: str | Path | Mapping[str, Any], folder: str | Path | None, overrides: Overrides) -> Spec:
    if isinstance(spec, Mapping):
        return load_dict(spec, folder=Path(folder or ""), overrides=overrides)
    if not isinstance(spec, (str, os.PathLike)):
        raise UsageError(f"spec: write the path of a file, or a dict, not {type(spec).__name__}")
    if folder is not None:
        raise UsageError("folder: only a dict needs it; the paths of a file start at the file's folder")
    if isinstance(spec, str) and "\n" in spec:
        raise UsageError("spec: this is the text of a spec; write the path of its file, or read it into a dict first")
    return load(Path(spec), overrides=overrides, option=ARGUMENT)


def _check_overrides(overrides: Overrides | None) -> Overrides:
    texts = () if overrides is None or isinstance(overrides, (str, Mapping)) else overrides
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            "overrides: write a dict of paths and values, {'systems.bm25.k1': 0.9}, or a list of texts, "
            "['systems.bm25.k1=0.9']"
        )
    return overrides or ()


def _check_only(only: str | Sequence[str]) -> tuple[str, ...]:
    patterns = (only,) if isinstance(only, str) else only
    if not isinstance(patterns, Sequence) or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError(f"only: write a name or a list of names, 'bm25' or ['bm25', 'ndcg*'], not {only!r}")
    return tuple(patterns)


def _check_limit(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"limit: write a whole number above 0, not {limit!r}")
    return limit


_FILE = "rows.jsonl"
_OFFLINE = "overlap"
_JUDGE = "judge"
_READING = ("datasets", "systems")


def judge(
    rows: Any,
    metrics: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]],
    *,
    judge: str | Mapping[str, Any] | None = None,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    judges: Mapping[str, Mapping[str, Any]] | None = None,
    gates: Sequence[Mapping[str, Any]] = (),
    limits: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    store: StorePlace = "beside",
    quiet: bool = False,
) -> FinishedEvaluation:
    """Compute metrics of answers that you already have.

    >>> rows = [{"question": "Who?", "answer": "Ada wrote it.", "contexts": ["Ada Lovelace wrote the first program."]}]
    >>> judge(rows, ["faithfulness"], store=None).passed
    True

    Args:
        rows: one row a question: dicts, objects, or a frame (polars, pandas, pyarrow), with `question`, `answer`,
            `contexts` and `reference`, as far as the metrics need them; the names of ragas, DeepEval and others are
            known. `id` is optional. Other columns can be expected by checks such as `contains`.
        metrics: words or blocks as under `metrics:` of a spec.
        judge: the judge of the metrics that name none: a word, a name in `judges`, or a block. A word such as
            `claims` asks the first of `models`. The default is `claims`, and without models `overlap`, which works
            offline.
        models, judges: blocks by name, as in a spec.
        gates: blocks as under `gates:` of a spec; without them the outcome is "pass" unless something fails.
        limits: as `limits:` of a spec, for example `{"max_cost": 2.5}`.
        folder: where relative paths in blocks start, and where `.rageval/store` is; the current folder by default.
        store: as for `run`: model replies are kept there, so that no call is paid for twice.
        quiet: show no progress on standard error.

    Raises:
        SpecError: a block is wrong; its text shows every diagnostic.
        UsageError: an argument is wrong, or there are no rows.
        RagevalError: the rows cannot be read; the message names the row, from 0.
    """
    words = [metrics] if isinstance(metrics, (str, Mapping)) else [*metrics]
    chosen, declared = _choose_judge(judge, models or {}, judges or {})
    content: dict[str, Any] = {
        "version": 1,
        "name": "judge",
        "datasets": {"rows": {"use": "jsonl", "path": _FILE}},
        "systems": {"answers": {"use": "file", "path": _FILE, "holds": "answers"}},
        "models": models or {},
        "judges": declared,
        "metrics": [_name_judge(metric, chosen) for metric in words],
        "gates": [*gates],
        "limits": limits or {},
        "reports": [],
    }
    place = Path(folder or "")
    options = Options(output=None, quiet=quiet, no_history=True, **choose_store(store))
    with TemporaryDirectory(prefix="rageval-") as temporary:
        path = Path(temporary).resolve() / _FILE
        write_rows(rows, path)
        rename = _renamer(path)
        try:
            outcome = run_spec(load_dict(_point_to(content, path), path="judge", folder=place), options)
        except SpecError as error:
            raise SpecError(_rename(error.diagnostics, rename)) from None
        except RagevalError as error:
            raise type(error)(rename(str(error))) from error
        _require_answers(outcome.failures, rename)
        evaluation = _detach(outcome.evaluation, content, rename)
    return wrap(replace(outcome, evaluation=evaluation))


def _choose_judge(
    judge: str | Mapping[str, Any] | None,
    models: Mapping[str, Mapping[str, Any]],
    judges: Mapping[str, Mapping[str, Any]],
) -> tuple[str, dict[str, Any]]:
    """The name of the judge of metrics that name none, and all judges to declare."""
    if isinstance(judge, str):
        if judge in judges or not models or not _asks_model(judge):
            return judge, {**judges}
        return judge, {**judges, judge: {"use": judge, "model": next(iter(models))}}
    if judge is None and not models:
        return _OFFLINE, {**judges}
    if _JUDGE in judges:
        raise UsageError(f"judges: choose another name than '{_JUDGE}', or name this one with judge='{_JUDGE}'")
    return _JUDGE, {**judges, _JUDGE: judge or {"use": "claims", "model": next(iter(models))}}


def _asks_model(word: str) -> bool:
    """Whether this is the word of a judge that must name a model, as `claims` must."""
    if word not in registry.words("judges"):
        return False
    field = registry.load("judges", word).node_type.model_fields.get("model")
    return field is not None and field.is_required()


def _name_judge(metric: Any, judge: str) -> Any:
    """The metric with the judge, if it needs one and names none. What is wrong with it is found later."""
    block = {"use": metric} if isinstance(metric, str) else metric
    if not isinstance(block, Mapping):
        return metric
    word = block.get("use")
    if "judge" in block or not isinstance(word, str) or word not in registry.words("metrics"):
        return metric
    return (
        {**block, "judge": judge} if _needs_judge(registry.load("metrics", word), {**block, "judge": judge}) else metric
    )


def _needs_judge(plugin: Any, block: Mapping[str, Any]) -> bool:
    """Whether the metric of a block asks the judge that the block names."""
    field = plugin.node_type.model_fields.get("judge")
    if field is None or field.is_required():
        return field is not None
    try:
        node = plugin.node_type.model_validate(block, by_alias=True)
    except ValidationError:
        return False
    return issubclass(plugin, JudgedMetric) and bool(plugin(node, Context(node.use)).needed_abilities())


def _point_to(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The spec with the rows' file."""
    sections = {key: {name: {**block, "path": str(path)} for name, block in content[key].items()} for key in _READING}
    return {**content, **sections}


def _renamer(path: Path) -> Callable[[str], str]:
    """Replaces the file in a message by what the caller knows: `rows[3]` for its fourth line."""
    pattern = re.compile(rf"(?:{re.escape(str(path))}|\b{re.escape(path.name)})(?::(\d+))?")
    mapped = re.compile(r"in 'datasets\.rows\.columns\.(\w+)'|under 'datasets\.rows' write columns: \{(\w+): (\w+)\}")

    def rename(text: str) -> str:
        text = pattern.sub(lambda found: f"rows[{int(found[1]) - 1}]" if found[1] else "rows", text)
        return mapped.sub(
            lambda found: f"of the rows '{found[1]}'" if found[1] else f"rename '{found[3]}' to '{found[2]}'",
            text.replace("no question of 'rows'", "no row"),
        )

    return rename


def _rename(diagnostics: Iterable[Diagnostic], rename: Callable[[str], str]) -> list[Diagnostic]:
    """The diagnostics without the file; those on the rows say so, and their columns can be renamed but not mapped."""
    renamed = [replace(one, message=rename(one.message), hint=one.hint and rename(one.hint)) for one in diagnostics]
    return [_address_rows(one) if one.path.partition(".")[0] in _READING else one for one in renamed]


def _address_rows(diagnostic: Diagnostic) -> Diagnostic:
    hint = diagnostic.hint
    hint = "name the texts 'question' and 'answer'" if hint and "write columns" in hint else hint
    message = diagnostic.message.removeprefix("rows: ").replace("rows has no questions", "there are no questions")
    return replace(diagnostic, path="rows", message=message, hint=hint)


def _require_answers(failures: Iterable[SystemFailure], rename: Callable[[str], str]) -> None:
    """Raise what made the rows unreadable as answers: without them nothing was measured."""
    for failure in failures:
        message = rename(failure.message)
        told = next((advice for advice in ("; write columns", f"; {NO_ANSWERS}") if advice in message), None)
        if failure.metric is None and isinstance(failure.error, DataError) and told:
            raise DataError(f"{message.partition(told)[0]}; name the texts 'answer' and 'contexts'")


def _detach(evaluation: Evaluation, content: Mapping[str, Any], rename: Callable[[str], str]) -> Evaluation:
    """The evaluation without its file: equal rows and arguments give equal results, wherever the file was."""
    samples, fingerprints, designs = evaluation.samples, evaluation.fingerprints, evaluation.question_designs
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
    spec = json.loads(rename(json.dumps(evaluation.provenance.spec)))
    return replace(
        evaluation,
        provenance=replace(evaluation.provenance, spec_digest=digest, spec=spec, taken_over=()),
        notes=tuple(replace(note, message=rename(note.message)) for note in evaluation.notes),
        failures=tuple(map(rename, evaluation.failures)),
        sample_table=SampleTable(lambda: [samples]),
        load_fingerprints=lambda: fingerprints,
        load_question_designs=lambda: designs,
    )


_ANSWER = ANSWERS[0]
_ABSENT = ("NAType", "NaTType")
"""pandas' types of missing values, besides NaN."""
_TYPES = "dicts, a polars or pandas frame, or objects such as test cases"


def write_rows(rows: Any, path: Path) -> int:
    """Write rows as JSON Lines, and return how many there are.

    A column `answer` is a system's answer here, so it gets a name that no reader takes for a gold answer.

    Args:
        rows: dicts, objects with attributes (dataclasses, pydantic models, test cases), a frame (polars, pandas,
            pyarrow), or a data set that is iterated as dicts.
        path: the file.

    Raises:
        UsageError: there are no rows, or one of them has no parts.
    """
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in iterate_rows(rows):
            file.write(json.dumps(_name_answer(row), default=simplify) + "\n")
            count += 1
    if not count:
        raise UsageError("rows: there are none; an evaluation needs at least one question with its answer")
    return count


def iterate_rows(rows: Any, name: str = "rows") -> Iterator[dict[str, Any]]:
    """The rows as dicts, with None for NaN; `name` is that of the argument.

    Raises:
        UsageError: a row has no parts, or this is something else.
    """
    if isinstance(rows, (str, bytes, Mapping)):
        raise UsageError(f"{name}: write a list of {_TYPES}, not {type(rows).__name__}")
    if hasattr(rows, "iter_rows"):
        rows = rows.iter_rows(named=True)
    elif hasattr(rows, "columns") and hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    elif hasattr(rows, "to_pylist"):
        rows = rows.to_pylist()
    if not isinstance(rows, Iterable):
        raise UsageError(f"{name}: write a list of {_TYPES}, not {type(rows).__name__}")
    for index, row in enumerate(rows):
        content = _as_dict(row, f"{name}[{index}]")
        yield {key: None if _is_nan(value) else value for key, value in content.items()}


def _as_dict(row: Any, place: str) -> dict[str, Any]:
    if isinstance(row, Mapping):
        content = dict(row)
    elif is_dataclass(row) and not isinstance(row, type):
        content = {field.name: getattr(row, field.name) for field in fields(row)}
    elif hasattr(row, "model_dump"):
        content = row.model_dump()
    else:
        content = {name: value for name, value in getattr(row, "__dict__", {}).items() if not name.startswith("_")}
    if not content or not all(isinstance(key, str) for key in content):
        raise UsageError(f"{place}: write a dict with texts as keys, not {type(row).__name__}")
    return content


def _name_answer(row: dict[str, Any]) -> dict[str, Any]:
    if "answer" not in row or any(name in row for name in ANSWERS):
        return row
    return {_ANSWER if name == "answer" else name: value for name, value in row.items()}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def simplify(value: Any) -> Any:
    """Arrays, series and other sequences as lists, numpy's scalars as numbers; anything else as text."""
    if type(value).__name__ in _ABSENT:
        return None
    for convert in ("tolist", "to_list", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return list(value)
    return str(value)
