"""Base classes for datasets whose spec block names a file for each part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from rageval_spec.diagnostics import FileFault
from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.reading.column_names import find_absent, list_columns
from rageval_spec.reading.duplicates import find_twice
from rageval_spec.reading.recognition import ForeignFileError
from rageval_spec.reading.records import Column, explain_absent

if TYPE_CHECKING:
    import polars as pl

N = TypeVar("N", bound=DatasetNode)


class FileDataset(Dataset[N]):
    """A dataset of files named in its node. Some files may be left out."""

    file_keys: ClassVar[tuple[str, ...]]
    """The node's keys whose value is a path or None."""

    def inputs(self) -> Sequence[InputFile]:
        """All files that the node names."""
        named = ((key, getattr(self.node, key)) for key in self.file_keys)
        return [InputFile(self.context.resolve(name), (key,)) for key, name in named if name is not None]

    def check_files(self) -> Iterator[FileFault]:
        """Report mapped columns that a file does not have, and required columns without a known name."""
        for key in self.file_keys:
            file = getattr(self.node, key)
            if file is None or not self.has_columns(key):
                continue
            try:
                present = self.list_columns(self.context.resolve(file))
            except ForeignFileError as error:
                yield FileFault((key,), error.finding, error.hint)
                continue
            if present is not None:
                yield from self.check_columns(key, file, present)

    def check_ids(self, key: str, rows: Iterable[tuple[str, Mapping[str, Any]]], column: Column) -> Iterator[FileFault]:
        """Report a query that a file lists twice."""
        twice = find_twice(self.context.resolve(getattr(self.node, key)), rows, column.known)
        if twice is not None:
            yield FileFault((key,), twice, "give each query its own id")

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Do what `check_files` does for one file.

        Args:
            key: the node's key that names the file.
            file: its name, as written in the node.
            present: the names of its columns.
        """
        columns, required = self.columns_of(key)
        setting = ("columns",) if columns is self.node.columns else ("columns", key)  # type: ignore[attr-defined]
        yield from find_absent(setting, columns, present, file)
        absent = [c for c in required if c.required and not c.mapped and not any(name in present for name in c.known)]
        if absent:
            taken = {name for column in required for name in column.known}
            message, hint = explain_absent(absent, present, taken)
            yield FileFault((key,), f"{file}: {message}", hint)

    def has_columns(self, key: str) -> bool:  # noqa: ARG002
        """Whether the columns of a key's file have names. Those of TREC qrels do not."""
        return True

    @abstractmethod
    def columns_of(self, key: str) -> tuple[BaseModel, Sequence[Column]]:
        """The block that names the columns of a file, and the columns that are read from it."""

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None if they cannot be found quickly.

        Raises:
            ForeignFileError: the file is in another format.
        """
        return list_columns(path, "json")

    def content(self) -> dict[str, Any]:
        """The content in its format from before `columns:` covered all files, so that existing stores stay usable."""
        content = super().content()
        node = content["node"]
        named = node.pop("columns")
        node.update(self.former_content(named))
        return content

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The content of `columns:` under its former key."""
        return {"columns": named}

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose key names a file. A part without a key is in another file."""
        return frozenset(part for part in ("queries", "corpus") if getattr(self.node, part, part) is not None)

    def loader(self, name: str | None, load: Callable[[Path], pl.DataFrame]) -> Callable[[], pl.DataFrame] | None:
        """`load` bound to the file of that name; None if the name is None."""
        return None if name is None else partial(load, self.context.resolve(name))
