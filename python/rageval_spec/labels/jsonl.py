"""`jsonl`: labels in a file of JSON lines, or a list in a `.json` file."""

from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode


class JsonlLabelsNode(FileLabelsNode):
    """What people judged, in JSON: one object per line, or a list of objects in a `.json` file."""


class JsonlLabels(FileLabels[JsonlLabelsNode]):
    """Reads an object for each judgement of each person. Values are numbers, true and false, or text."""

    known_as = ("json",)
    form = "json"


PLUGIN = JsonlLabels
