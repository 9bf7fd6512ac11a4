"""The contract of labels: what people judged about answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.labels import Label, Scale


class LabelsNode(Node):
    """A block under `labels:`."""

    scale: tuple[float, float] = Field(
        default=(0.0, 1.0),
        description="The labels that stand for the worst and the best, such as [1, 5]. No number may lie outside. "
        "Yes is the best, and no the worst.",
    )

    @field_validator("scale")
    @classmethod
    def _check_ends(cls, scale: tuple[float, float]) -> tuple[float, float]:
        if scale[0] == scale[1]:
            raise PydanticCustomError("scale", "must have two different numbers, the worst first, such as [1, 5]")
        return scale


class Labels(Plugin[N]):
    """Reads what people judged about answers."""

    @abstractmethod
    def read(self) -> Sequence[Label]:
        """All labels, in the order of the file.

        Raises:
            DataError: they cannot be read; the message begins with the place, `file:line`.
        """

    @property
    def scale(self) -> Scale:
        """What the worst and the best label are."""
        from rageval_spec.data.labels import Scale

        return Scale(*self.node.scale)  # type: ignore[attr-defined]
