"""One call's share of a budget, from before its first try until it has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from rageval_spec.data.chat import UnfinishedError

if TYPE_CHECKING:
    from typing import Self

    from rageval_spec.plugin.budget import Budget


class Reservation:
    """Reserves every try of one call before it is made; a `with` block ends the call.

    Attributes:
        cost: what the call really cost, in US dollars; set it before the block ends.
    """

    def __init__(self, budget: Budget, expected: float = 0.0, *, is_of_system: bool = False) -> None:
        """Reserve nothing yet; `expected` is what the call costs at most. Questions to systems are counted as such."""
        self._budget = budget
        self._expected = expected
        self._is_of_system = is_of_system
        self._has_begun = False
        self.cost = 0.0

    def begin(self) -> Callable[[], None] | None:
        """Reserve the first try. Where calls under way leave no room for it, gives what waits until they do.

        Raises:
            LimitError: it may not be made, nor any other from now on.
        """
        self._has_begun = self._budget.try_call(self._expected, is_of_system=self._is_of_system)
        return None if self._has_begun else partial(self._budget.wait_for_room, self._expected)

    def begin_retry(self) -> None:
        """Reserve a further try.

        Raises:
            LimitError: it may not be made, nor any other from now on.
        """
        self._budget.begin_retry()

    def __enter__(self) -> Self:
        """This reservation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The call has ended; one that the evaluation stopped was interrupted, and has not failed."""
        if self._has_begun:
            is_interrupted = isinstance(error, UnfinishedError)
            self._budget.end_call(self._expected, self.cost, is_interrupted=is_interrupted)
