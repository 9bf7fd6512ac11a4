"""Weights & Biases: its tables as files (`*.table.json`), in and out. Its service is not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, RowsNode, translate_known
from rageval_spec.exchange.shared.scores import list_rows
from rageval_spec.reading.formats.text_files import text_lines
from rageval_spec.recorded.values import clean
from rageval_spec.store.disk import InputFile

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

SUFFIX = ".table.json"
_OPTIONAL = ("reference", "error", "seconds", "input_tokens", "output_tokens", "cost")


class WandbSourceNode(RowsNode):
    path: str = Field(
        description=f"A file that ends in `{SUFFIX}`, or a folder with one: that of a run, or `wandb/latest-run`."
    )
    table: str | None = Field(
        default=None, description="The name under which the table was logged, if the folder has several."
    )


class WandbSource(RowFileSource):
    """Reads a table that a run logged, with the usual column names of questions and answers."""

    node_type = WandbSourceNode
    tool = "wandb"
    summary = f"Read a table that was logged to W&B, from the files of a run: {SUFFIX}."
    node: WandbSourceNode
    examples = (
        "import wandb wandb/latest-run -o answers.jsonl",
        "import wandb wandb/latest-run --table answers -o answers.jsonl",
    )

    def inputs(self) -> Sequence[InputFile]:
        return (InputFile(self._find(), ("path",)),)

    def read(self) -> Iterator[Any]:
        yield from self.read_all()

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        path = self._find()
        columns, data = _load(path)
        for number, row in enumerate(data, 1):
            if not isinstance(row, list) or len(row) != len(columns):
                raise DataError(f"{path}: row {number} is not a list of {len(columns)} values, as the columns are")
            yield f"{path}: row {number}", dict(zip(columns, row, strict=True))

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return translate_known(row)

    def _find(self) -> Path:
        path = self._path
        if not path.is_dir():
            return path
        found = sorted(path.rglob(f"*{SUFFIX}"))
        wanted = self.node.table
        if wanted is not None:
            found = [file for file in found if _split_name(file)[0] == wanted]
        if not found:
            which = f" called '{wanted}'" if wanted is not None else ""
            raise DataError(f"{path}: this folder has no table{which} ({SUFFIX})")
        if len(names := sorted({_split_name(file)[0] for file in found})) > 1:
            raise DataError(f"{path}: this folder has several tables; name one with --table: {', '.join(names)}")
        # A run can log a table again and again; the last one is complete.
        return max(found, key=lambda file: (_split_name(file)[1], file.name))


class WandbTarget(FileTarget[TargetNode]):
    filename = f"rageval{SUFFIX}"
    summary = "Write answers and values as a table of W&B: a row for each answer, a column for each metric."
    examples = (f"export wandb rageval-results -o rageval{SUFFIX}",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        rows = [_make_row(sample, values, evaluation.metrics) for sample, values in list_rows(evaluation)]
        unused = {column for column in _OPTIONAL if all(row[column] is None for row in rows)}
        columns = [column for column in (rows[0] if rows else ()) if column not in unused]
        content = {"columns": columns, "data": [[clean(row[column]) for column in columns] for row in rows]}
        yield "", json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _make_row(sample: Mapping[str, Any], values: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {name: sample[name] for name in ("dataset", "system", "query_id", "question", "answer")}
    row |= {"contexts": sample["contexts"] or [], "context_ids": sample["context_ids"] or []}
    row |= {"reference": next(iter(sample["references"] or ()), None)}
    row |= {name: sample[name] for name in _OPTIONAL[1:]}
    for metric in metrics:
        found = values.get(metric, {})
        row |= {metric: found.get("value"), f"{metric} reason": found.get("reason")}
    return row


def _load(path: Path) -> tuple[list[str], list[Any]]:
    try:
        content = json.loads("\n".join(line for _, line in text_lines(path, longest=None)))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: this is not JSON, or only a part of it: {str(error)[:200]}") from error
    columns = content.get("columns") if isinstance(content, Mapping) else None
    data = content.get("data") if isinstance(content, Mapping) else None
    if not isinstance(columns, list) or not isinstance(data, list):
        raise DataError(f"{path}: this is not a table of W&B: it has no 'columns' and 'data'")
    if not data:
        raise DataError(f"{path}: the table has no rows")
    return [str(column) for column in columns], data


def _split_name(file: Path) -> tuple[str, int]:
    """The name under which a table was logged, and its step: the file is called `NAME_STEP_DIGEST.table.json`."""
    name = file.name.removesuffix(SUFFIX)
    parts = name.rsplit("_", 2)
    return (parts[0], int(parts[1])) if len(parts) == 3 and parts[1].isdigit() else (name, -1)


SOURCE = WandbSource
TARGET = WandbTarget
