"""The contract of reports."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


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

    @abstractmethod
    def render(self, evaluation: Evaluation) -> bytes:
        """The report's bytes (UTF-8 if it is text). The same evaluation gives the same bytes."""
