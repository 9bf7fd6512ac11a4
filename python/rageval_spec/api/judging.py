"""`rageval_spec.judge`: metrics of answers that a program already has, without a spec."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.api.finished import FinishedEvaluation
from rageval_spec.api.rows import write_rows
from rageval_spec.api.running import StorePlace, choose_store, wrap
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.diagnostics import Diagnostic, SpecError
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.metrics.shared.judged import JudgedMetric
from rageval_spec.pipeline.task import Failure
from rageval_spec.plugin import Context
from rageval_spec.reading.answer_columns import NO_ANSWERS
from rageval_spec.runner import Options
from rageval_spec.runner import run as run_spec
from rageval_spec.spec import load_dict

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
        raise UsageError(f"judges: choose another name than '{_JUDGE}', or say which one with judge='{_JUDGE}'")
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
    return lambda text: pattern.sub(lambda found: f"rows[{int(found[1]) - 1}]" if found[1] else "rows", text)


def _rename(diagnostics: Iterable[Diagnostic], rename: Callable[[str], str]) -> list[Diagnostic]:
    """The diagnostics without the file; those on the rows say so, and their columns can be renamed but not mapped."""
    renamed = [replace(one, message=rename(one.message), hint=one.hint and rename(one.hint)) for one in diagnostics]
    return [_address_rows(one) if one.path.partition(".")[0] in _READING else one for one in renamed]


def _address_rows(diagnostic: Diagnostic) -> Diagnostic:
    hint = diagnostic.hint
    hint = "name the texts 'question' and 'answer'" if hint and hint.startswith("write columns") else hint
    return replace(diagnostic, path="rows", message=diagnostic.message.removeprefix("rows: "), hint=hint)


def _require_answers(failures: Iterable[Failure], rename: Callable[[str], str]) -> None:
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
    return replace(
        evaluation,
        spec_digest=digest,
        spec=json.loads(rename(json.dumps(evaluation.spec))) if evaluation.spec else {},
        notes=tuple(replace(note, message=rename(note.message)) for note in evaluation.notes),
        failures=tuple(map(rename, evaluation.failures)),
        load_samples=lambda: samples,
        stream_samples=None,
        load_fingerprints=lambda: fingerprints,
        load_question_designs=lambda: designs,
    )
