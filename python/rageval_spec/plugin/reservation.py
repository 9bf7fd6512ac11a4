"""One call's share of a budget, from before its first try until the call has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from rageval_spec.data.call_errors import UnfinishedError

if TYPE_CHECKING:
    from typing import Self

    from rageval_spec.plugin.budget import Budget


class Reservation:
    """Reserves every try of one call before the try is made. The call ends with the `with` block.

    Attributes:
        cost: what the call really cost, in US dollars. The caller sets it before the block ends.
    """

    def __init__(self, budget: Budget, expected: float = 0.0, *, is_of_system: bool = False) -> None:
        """Reserve nothing yet.

        `expected` is the most that the call can cost; `is_of_system` marks a question to an answering system.
        """
        self._budget = budget
        self._expected = expected
        self._is_of_system = is_of_system
        self._has_begun = False
        self.cost = 0.0

    def begin(self) -> Callable[[], None] | None:
        """Reserve the first try. If calls under way leave no room for it, return a function that waits until they do.

        Raises:
            LimitError: neither this call nor any later one may be made.
        """
        self._has_begun = self._budget.try_call(self._expected, is_of_system=self._is_of_system)
        return None if self._has_begun else partial(self._budget.wait_for_room, self._expected)

    def begin_retry(self) -> None:
        """Reserve a retry.

        Raises:
            LimitError: neither this retry nor any later call may be made.
        """
        self._budget.begin_retry()

    def __enter__(self) -> Self:
        """Enter the block of the call; returns this reservation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the call. A call that the evaluation stopped counts as interrupted, not as failed."""
        if self._has_begun:
            is_interrupted = isinstance(error, UnfinishedError)
            self._budget.end_call(self._expected, self.cost, is_interrupted=is_interrupted)
