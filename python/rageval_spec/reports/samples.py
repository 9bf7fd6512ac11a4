"""`samples`: one row for each question, with its answer, contexts, reference, and all values and reasons.

The suffix of `path:` says how: `.csv`, `.xlsx`, `.jsonl` or `.parquet`. With several systems, each has a file of its
own in a folder. The files contain the texts of the datasets and the answers, so protect them as you protect those.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from rageval_spec.diagnostics import make_json_visible
from rageval_spec.drawing import question_tables
from rageval_spec.plugin import Context, Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

Form = Literal["csv", "xlsx", "jsonl", "parquet"]
DEFAULT = "questions.csv"


class SamplesNode(ReportNode):
    """Settings of the report `samples`: one row for each question, with texts, values and reasons."""

    path: str | None = Field(
        default=None,
        pattern=r"\.(csv|xlsx|jsonl|parquet)$",
        description="Where to write it: a file name inside the output folder, or an absolute path, that ends in .csv, "
        ".xlsx, .jsonl or .parquet. With several systems, a folder of this name without the suffix has a file for "
        f"each. Default: {DEFAULT}.",
    )


class SamplesReport(Report[SamplesNode]):
    """Renders one row for each question."""

    known_as = ("questions", "answers", "excel")
    filename: ClassVar[str | None] = DEFAULT

    def __init__(self, node: SamplesNode, context: Context) -> None:
        """Check that the library is installed that the format needs.

        Raises:
            UsageError: it is not installed.
        """
        super().__init__(node, context)
        if self._form == "xlsx":
            question_tables.check_installed()

    def render(self, evaluation: Evaluation) -> bytes:
        """The questions of all systems in one file."""
        return self._write(evaluation, None)

    def render_files(self, evaluation: Evaluation) -> Iterator[tuple[str, bytes]]:
        """One file for each system; its one file, if there is one system."""
        systems = question_tables.list_systems(evaluation)
        if len(systems) < 2:
            yield "", self.render(evaluation)
        else:
            for system in reversed(systems):
                yield f"{system}.{self._form}", self._write(evaluation, system)

    @property
    def _form(self) -> Form:
        form: Form = (self.node.path or DEFAULT).rpartition(".")[2]  # type: ignore[assignment]  # the pattern says so
        return form

    def _write(self, evaluation: Evaluation, system: str | None) -> bytes:
        blocks = question_tables.list_blocks(evaluation, system)
        stream = BytesIO()
        if self._form == "xlsx":
            question_tables.write_workbook(map(question_tables.flatten, blocks), stream)
        elif self._form == "csv":
            for number, block in enumerate(blocks):
                question_tables.flatten(block).write_csv(stream, include_header=number == 0)
        elif self._form == "jsonl":
            for block in blocks:
                stream.write(make_json_visible(block.write_ndjson()).encode())
        else:
            question_tables.gather(blocks).write_parquet(stream)
        return stream.getvalue()


PLUGIN = SamplesReport
