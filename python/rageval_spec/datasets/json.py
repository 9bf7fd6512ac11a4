"""`json`: questions with gold answers in one JSON document: a list, a golden set with its version, or columns."""

from __future__ import annotations

from rageval_spec.datasets.shared.row_dataset import QuestionsNode, RowDataset


class JsonDatasetNode(QuestionsNode):
    """A JSON file: a list of questions, alone or under a key such as `test_cases`, or a list of values per column.

    Plain, `.gz` or `.zst`. What the file says beside its questions, such as `version`, is kept with the results.
    """


class Json(RowDataset[JsonDatasetNode]):
    """Reads a JSON document of questions."""

    known_as = ("columnar", "columnar_json")
    form = "json"


PLUGIN = Json
