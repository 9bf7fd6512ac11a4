"""Names of values where several answers of an evaluation were read from the same trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rageval_spec.exchange.shared.scores import Score


class Names:
    """Keeps the values of several answers apart at a place that has one value for each name, such as a trace.

    The dataset and system that come first in the evaluation have the plain names. Others that read the same trace get
    their own after it: `faithfulness (hard/v2)`.
    """

    def __init__(self) -> None:
        """No place has a value yet."""
        self._owners: dict[str, tuple[str, str]] = {}

    def choose(self, place: str, score: Score, name: str) -> str:
        """The name of a value of this answer at this place, where `name` is the plain one."""
        owner = score.dataset, score.system
        return name if self._owners.setdefault(place, owner) == owner else f"{name} ({'/'.join(owner)})"
