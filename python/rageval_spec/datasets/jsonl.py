"""`jsonl`: one query per line, with its gold answer, the ids of its relevant documents, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rageval_spec.datasets.shared.row_dataset import QuestionsNode, RowDataset


class JsonlNode(QuestionsNode):
    """A JSON Lines file with one query per line, or a `.json` file with a list of queries. Plain, `.gz` or `.zst`."""

    former_columns: ClassVar[Mapping[str, str]] = {"fields": "", "corpus_fields": "corpus"}


class Jsonl(RowDataset[JsonlNode]):
    """Reads a JSON Lines file of queries."""

    known_as = ("ndjson", "json_lines")
    form = "json"

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The contents of `columns:` under the two keys that preceded it."""
        corpus = named.pop("corpus")
        return {"fields": named, "corpus_fields": corpus}


PLUGIN = Jsonl
