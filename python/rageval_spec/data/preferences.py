"""A choice between two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Choice = Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class Preference:
    """What one person, or one judge, said of two answers that were shown in an order.

    Attributes:
        query_id: the question.
        first, second: the texts of the answers, in the order in which they were shown.
        choice: the better one, or `tie`.
        annotator: who chose; "" if it is not said.
        metric: what the better one is better at; "" if it is not said.
        place: where the row stands: `pairs.csv:12`.
    """

    query_id: str
    first: str
    second: str
    choice: Choice
    annotator: str = ""
    metric: str = ""
    place: str = ""

    @property
    def pair(self) -> tuple[str, str, str, frozenset[str]]:
        """What was compared, whichever answer was shown first, and by whom."""
        return self.query_id, self.metric, self.annotator, frozenset((self.first, self.second))

    @property
    def winner(self) -> str | None:
        """The text of the better answer; None for a tie."""
        return None if self.choice == "tie" else self.first if self.choice == "first" else self.second
