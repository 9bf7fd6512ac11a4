"""Hugging Face datasets: folders of `save_to_disk` and of the hub in, a folder for `load_dataset` out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared.connections import read_object
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, RowsNode, translate_known
from rageval_spec.exchange.shared.scores import list_rows
from rageval_spec.libraries import pl
from rageval_spec.reading.rows import read_rows
from rageval_spec.store.disk import InputFile

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_STATE, _SPLITS = "state.json", "dataset_dict.json"
_DATA = ("*.parquet", "*.jsonl", "*.jsonl.gz", "*.json", "*.csv")


class HuggingFaceNode(RowsNode):
    path: str = Field(description="The folder that `save_to_disk` wrote, a folder of the hub, or one of its files.")
    split: str | None = Field(default=None, description="The split. Default: test, or the only one.")


class HuggingFaceSource(RowFileSource):
    """Reads the rows of one split. Nothing is fetched from the hub."""

    node_type = HuggingFaceNode
    tool = "huggingface"
    summary = "Read a dataset of Hugging Face on the disk: what save_to_disk wrote, or a folder with Parquet files."
    examples = ("import huggingface my_dataset --split test -o golden.jsonl",)
    node: HuggingFaceNode

    def inputs(self) -> Sequence[InputFile]:
        return [InputFile(file, ("path",)) for file in self._files()]

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for file in self._files():
            yield from _read_arrow(file) if file.suffix == ".arrow" else read_rows(file)

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return translate_known(row)

    def read(self) -> Iterator[Any]:
        if not self._path.exists():
            raise UsageError(f"{self.node.path}: no such file or folder")
        yield from self.read_all()

    def _files(self) -> list[Path]:
        if self._path.is_file():
            return [self._path]
        if (self._path / _SPLITS).is_file() or (self._path / _STATE).is_file():
            return self._files_of_state(self._choose_saved())
        return self._choose_files()

    def _choose_saved(self) -> Path:
        """The folder of the split of what `save_to_disk` wrote."""
        if (self._path / _STATE).is_file():
            return self._path
        splits = _read_json(self._path / _SPLITS).get("splits")
        names = [str(one) for one in splits] if isinstance(splits, list) else []
        return self._path / self._choose(names)

    def _files_of_state(self, folder: Path) -> list[Path]:
        found = _read_json(folder / _STATE).get("_data_files")
        names = [str(one.get("filename")) for one in found or () if isinstance(one, Mapping)]
        missing = [name for name in names if not (folder / name).is_file()]
        if not names or missing:
            told = f"{missing[0]} is missing" if missing else "it names no files"
            raise DataError(f"{folder / _STATE}: {told}; save the dataset again with save_to_disk")
        return [folder / name for name in names]

    def _choose_files(self) -> list[Path]:
        """The files of the split in a folder of the hub, whose names begin with it or whose folder is called so."""
        for pattern in _DATA:
            files = sorted(
                file for file in self._path.rglob(pattern) if not file.name.startswith((".", "dataset_info"))
            )
            if files:
                names = sorted({_split_of(file, self._path) for file in files})
                wanted = self._choose(names)
                return [file for file in files if _split_of(file, self._path) == wanted]
        raise DataError(f"{self._path}: the folder has no Parquet, JSON or CSV files; fetch the dataset's files first")

    def _choose(self, names: Sequence[str]) -> str:
        wanted = self.node.split or ("test" if "test" in names or len(names) != 1 else names[0])
        if wanted not in names:
            told = ", ".join(names) or "none"
            raise UsageError(f"{self._path}: there is no split '{wanted}'; name one with --split: {told}")
        return wanted


def _split_of(file: Path, root: Path) -> str:
    """The split that a file's name (`test-00000-of-00001.parquet`, `test.csv`) or its folder says."""
    name = file.name.partition(".")[0].partition("-")[0]
    known = ("train", "test", "validation", "valid", "dev")
    folders = [part for part in file.relative_to(root).parts[:-1] if part in known]
    return folders[-1] if folders and name not in known else name


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return read_object(found)


def _read_arrow(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of an Arrow stream, as `save_to_disk` writes it."""
    try:
        frame = pl.read_ipc_stream(file)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise DataError(f"{file}: this is not a complete Arrow stream: {error}") from error
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        yield f"{file}: row {number}", row


class HuggingFaceTarget(FileTarget[TargetNode]):
    """Writes a folder that `load_dataset` reads: a Parquet file, and a card that names it."""

    filename = "huggingface.parquet"
    summary = "Write answers and values as a dataset of Hugging Face: a folder with a Parquet file and its card."
    examples = ("export huggingface rageval-results -o answers.parquet",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """`README.md` and `data/test-00000-of-00001.parquet` in a folder."""
        from rageval_spec.data.tables import dump_parquet

        rows = [_make_row(sample, values, evaluation.metrics) for sample, values in list_rows(evaluation)]
        texts = pl.List(pl.String)
        lists = dict.fromkeys(("contexts", "context_ids", "references", "reference_contexts", "relevant"), texts)
        frame = pl.DataFrame(rows, schema_overrides=lists, infer_schema_length=None)
        yield "README.md", _CARD.format(name=json.dumps(evaluation.name)).encode()
        yield "data/test-00000-of-00001.parquet", dump_parquet(frame)


_COLUMNS = (
    *("dataset", "system", "query_id", "question", "answer", "contexts", "context_ids", "references"),
    *("reference_contexts", "error", "seconds", "input_tokens", "output_tokens", "cost"),
)
_CARD = """---
configs:
- config_name: default
  data_files:
  - split: test
    path: data/test-*.parquet
pretty_name: {name}
---

Answers and their values, one row each, written by rageval-spec.
"""


def _make_row(
    sample: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]], metrics: Sequence[str]
) -> dict[str, Any]:
    relevant = sample["relevant"]
    scored = {metric: values[metric]["value"] if metric in values else None for metric in metrics}
    named = {column: sample[column] for column in _COLUMNS}
    return {**named, "relevant": relevant and [one["doc_id"] for one in relevant if one["relevance"] > 0], **scored}


SOURCE = HuggingFaceSource
TARGET = HuggingFaceTarget
