"""The base class of labels in one file."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.labels import Label
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import InputFile, Labels, LabelsNode
from rageval_spec.reading.label_files import SETTING, Form, read_label_file, refuse_duplicates

_MOST_CHECKED = 8 << 20
"""The most bytes of a file that is read whole to check it. Labels are made by hand, so few files are longer."""


class LabelColumns(BaseModel):
    """The column of each part of a label, where it has none of the usual names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_id: str | None = Field(default=None, description="The question's id. Default: query_id, id, question_id, ...")
    value: str | None = Field(
        default=None,
        description="A number, yes or no, or the name of a class. Rows without a value are skipped. Default: value, "
        "label, rating, score, ...",
    )
    annotator: str | None = Field(default=None, description="Who judged. Default: annotator, rater, reviewer, ...")
    metric: str | None = Field(
        default=None, description="What was judged: the name of a metric. Default: metric, criterion, aspect."
    )
    dataset: str | None = Field(default=None, description="The dataset of the question. Default: dataset.")
    system: str | None = Field(default=None, description="Whose answer was judged. Default: system, model.")
    answer: str | None = Field(
        default=None,
        description="The digest of the answer's text; the label belongs to this text only. Default: answer_digest.",
    )
    claim: str | None = Field(
        default=None, description="The number of the judged claim, from 0, if claims were judged. Default: claim."
    )
    time: str | None = Field(default=None, description="When it was judged. Default: time, created_at, timestamp.")
    comment: str | None = Field(default=None, description="What the annotator noted. Default: comment, note.")
    reason: str | None = Field(default=None, description="Why the answer was chosen for labelling. Default: reason.")
    probability: str | None = Field(
        default=None,
        description="How likely the answer was to be chosen for labelling, above 0 and at most 1. Default: "
        "probability, selection_probability.",
    )
    adjudicated: str | None = Field(
        default=None,
        description="Yes if the label settles what annotators disagreed on; it then counts instead of theirs. Default: "
        "adjudicated, is_adjudicated.",
    )
    saw_judge: str | None = Field(
        default=None,
        description="Yes if the annotator had seen the judge's verdict, as the review page notes. Default: saw_judge.",
    )


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
            yield FileFault(("path",), str(error), code="labels")

    @property
    def columns(self) -> dict[str, str]:
        """The column of each part that the node names."""
        return self.node.columns.model_dump(exclude_none=True)
