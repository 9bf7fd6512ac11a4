"""`label_studio`: labels in an export of Label Studio."""

from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode


class LabelStudioNode(FileLabelsNode):
    """What people judged in Label Studio: a project's export in the format JSON."""


class LabelStudio(FileLabels[LabelStudioNode]):
    """Reads a label for each value of each annotation: `Choices`, `Rating` and `Number`.

    The criterion is what the task's data has as `metric`, or else the name of the control. `TextArea` is the comment.
    The other parts come from the task's data. An annotation marked as ground truth is adjudicated.
    """

    known_as = ("labelstudio", "label-studio")
    form = "label_studio"


PLUGIN = LabelStudio
