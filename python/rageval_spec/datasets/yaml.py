"""`yaml`: questions with gold answers in a YAML list, or the tests of promptfoo."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.datasets.shared.row_dataset import QuestionsDataset, QuestionsNode
from rageval_spec.reading.row_sources import RowFile


class YamlNode(QuestionsNode):
    """A YAML file with a list of questions, alone or under a key such as `tests` or `test_cases`.

    A value without quotes is a number or a Boolean only if JSON would write it the same way, and otherwise text: `no`,
    `007`, `12:30` and `2026-01-05` stay as they are.
    """


class Yaml(QuestionsDataset[YamlNode]):
    """Reads a YAML file of questions."""

    node_type = YamlNode
    known_as = ("yml", "promptfoo")

    def find_source(self, path: Path) -> RowFile:
        """The file, whatever its name."""
        return RowFile(path, "yaml", layout=self.node.layout)


PLUGIN = Yaml
