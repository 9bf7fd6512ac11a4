"""`jsonl`: labels in a file of JSON lines, or a list in a `.json` file."""

from collections.abc import Sequence

from rageval_spec.data.labels import Label
from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode
from rageval_spec.reading.label_files import SETTING, read_label_file


class JsonlLabelsNode(FileLabelsNode):
    """What people judged, in JSON: one object per line, or a list of objects in a `.json` file."""


class JsonlLabels(FileLabels[JsonlLabelsNode]):
    """Reads an object for each judgement of each person. Values are numbers, true and false, or text."""

    node_type = JsonlLabelsNode
    known_as = ("json",)

    def read_file(self) -> Sequence[Label]:
        return read_label_file(self.context.resolve(self.node.path), self.columns, "json", setting=SETTING)


PLUGIN = JsonlLabels
