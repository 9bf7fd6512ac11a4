"""`yaml`: questions with gold answers in a YAML list, or the tests of promptfoo."""

from __future__ import annotations

from rageval_spec.datasets.shared.row_dataset import QuestionsNode, RowDataset


class YamlNode(QuestionsNode):
    """A YAML file with a list of questions, alone or under a key such as `tests` or `test_cases`.

    A value without quotes is a number or a Boolean only if JSON would write it the same way, and otherwise text: `no`,
    `007`, `12:30` and `2026-01-05` stay as they are.
    """


class Yaml(RowDataset[YamlNode]):
    """Reads a YAML file of questions."""

    known_as = ("yml", "promptfoo")
    form = "yaml"


PLUGIN = Yaml
