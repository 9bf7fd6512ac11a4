"""The contract of reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


RESULTS_FOLDER = "rageval-results"
"""The folder that an evaluation's results are written to by default."""
RESULTS_FILES = (
    "results.json", "values.parquet", "samples.parquet", "findings.parquet", "documents.parquet", "baselines.parquet",
    "fingerprints.parquet",
)  # fmt: skip
"""The files of a results folder, whose names no other report may have."""
MANIFEST, STATEMENT = "manifest.json", "statement.json"
"""What `run` writes after all reports: the digests of its files, and a statement about them to be signed."""


class ReportNode(Node):
    """A block under `reports:`; a report without required keys can be a bare string such as `terminal`."""

    path: str | None = Field(
        default=None,
        description="Where to write it: a file name inside the output folder, or an absolute path.",
    )


class Report(Plugin[N]):
    """Renders an evaluation."""

    filename: ClassVar[str | None] = None
    """The report's file in the output folder unless `path:` names another; None for the terminal."""

    is_part_of_results: ClassVar[bool] = False
    """Whether every results folder has this report under its `filename`, so that it need not be written again."""

    comes_last: ClassVar[bool] = False
    """Whether it is made when all others are written, because it sends their files or takes long."""

    @abstractmethod
    def render(self, evaluation: Evaluation) -> bytes:
        """The report's bytes (UTF-8 if it is text). The same evaluation gives the same bytes."""

    def render_files(self, evaluation: Evaluation) -> Iterator[tuple[str, bytes]]:
        """The report's files: their names and bytes. The name of its one file is "".

        A report that can be too large for one file overrides this. If its names are not "", they are paths in a
        folder, which is named as the one file would be, without the suffix. The file that a reader opens comes last.
        """
        yield "", self.render(evaluation)
