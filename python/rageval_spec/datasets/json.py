"""`json`: questions with gold answers in one JSON document: a list, a golden set with its version, or columns."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.shared.questions import QuestionsDataset, QuestionsNode
from rageval_spec.reading.row_sources import RowSource


class JsonNode(QuestionsNode):
    """A JSON file: a list of questions, alone or under a key such as `test_cases`, or a list of values per column.

    Plain, `.gz` or `.zst`. What the file says beside its questions, such as `version`, is kept with the results.
    """


class Json(QuestionsDataset[JsonNode]):
    """Reads a JSON document of questions."""

    node_type = JsonNode
    known_as = ("columnar", "columnar_json")

    def find_source(self, path: Path) -> RowSource:
        """The file."""
        return RowSource(path, "json", layout=self.node.layout)


PLUGIN = Json
