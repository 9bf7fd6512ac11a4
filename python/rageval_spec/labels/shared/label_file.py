"""The base class of labels in one file."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.labels import Label
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import InputFile, Labels, LabelsNode
from rageval_spec.reading.label_files import LABEL_COLUMNS, SETTING, Form, read_label_file, refuse_duplicates

_MOST_CHECKED = 8 << 20
"""The most bytes of a file that is read whole to check it. Labels are made by hand, so few files are longer."""


def _part(part: str, what: str) -> Any:
    """A field with the name of the column of a part."""
    *first, last = (f"`{name}`" for name in LABEL_COLUMNS[part])
    return Field(default=None, description=f"{what} Default: {' or '.join(filter(None, (', '.join(first), last)))}.")


class LabelColumns(BaseModel):
    """The column of each part of a label, where it has none of the usual names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_id: str | None = _part("query_id", "The question's id.")
    value: str | None = _part("value", "A number, yes or no, or the name of a class. Rows without a value are skipped.")
    annotator: str | None = _part("annotator", "Who judged.")
    metric: str | None = _part("metric", "What was judged: the name of a metric.")
    dataset: str | None = _part("dataset", "The dataset of the question.")
    system: str | None = _part("system", "Whose answer was judged.")
    answer: str | None = _part("answer", "The digest of the answer's text; the label belongs to this text only.")
    claim: str | None = _part("claim", "The number of the judged claim, from 0.")
    document: str | None = _part("document", "The document's id, where its relevance to the question was judged.")
    time: str | None = _part("time", "When it was judged.")
    comment: str | None = _part("comment", "What the annotator noted.")
    reason: str | None = _part("reason", "Why the answer was chosen for labelling.")
    probability: str | None = _part("probability", "How likely the answer was to be chosen, above 0 and at most 1.")
    adjudicated: str | None = _part("adjudicated", "Yes if the label settles a disagreement and counts for the others.")
    saw_judge: str | None = _part("saw_judge", "Yes if the annotator had seen the judge's verdict.")


class FileLabelsNode(LabelsNode):
    """Labels in one file."""

    path: str = Field(description="The file. A row is one person's judgement of one answer on one criterion.")
    columns: LabelColumns = Field(
        default_factory=LabelColumns, description="The file's columns, where they do not have the usual names."
    )


N = TypeVar("N", bound=FileLabelsNode)


class FileLabels(Labels[N]):
    """Labels in one file."""

    form: ClassVar[Form]
    """How the file is written."""
    options: ClassVar[Sequence[str]] = ()
    """The keys of the node that say more about that."""

    def inputs(self) -> Sequence[InputFile]:
        return [InputFile(self.context.resolve(self.node.path), ("path",))]

    def read(self) -> Sequence[Label]:
        """All labels of the file, which is read once for all metrics and baselines that use them."""
        return self._labels

    @cached_property
    def _labels(self) -> tuple[Label, ...]:
        path, options = self.context.resolve(self.node.path), {name: getattr(self.node, name) for name in self.options}
        labels = tuple(read_label_file(path, self.columns, self.form, setting=SETTING, **options))
        refuse_duplicates(labels)
        return labels

    def check_files(self) -> Iterator[FileFault]:
        """Report what is wrong with the file, unless it is too long to be read quickly."""
        path = self.context.resolve(self.node.path)
        if not path.is_file() or path.stat().st_size > _MOST_CHECKED:
            return
        try:
            self.read()
        except DataError as error:
            yield FileFault(("path",), str(error), code="unusable-labels")

    @property
    def columns(self) -> dict[str, str]:
        """The column of each part that the node names."""
        return self.node.columns.model_dump(exclude_none=True)
