"""`json`: questions with gold answers in one JSON document: a list, a golden set with its version, or columns."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.shared.row_dataset import QuestionsDataset, QuestionsNode
from rageval_spec.reading.row_sources import RowFile


class JsonDatasetNode(QuestionsNode):
    """A JSON file: a list of questions, alone or under a key such as `test_cases`, or a list of values per column.

    Plain, `.gz` or `.zst`. What the file says beside its questions, such as `version`, is kept with the results.
    """


class Json(QuestionsDataset[JsonDatasetNode]):
    """Reads a JSON document of questions."""

    node_type = JsonDatasetNode
    known_as = ("columnar", "columnar_json")

    def find_source(self, path: Path) -> RowFile:
        """The file."""
        return RowFile(path, "json", layout=self.node.layout)


PLUGIN = Json
