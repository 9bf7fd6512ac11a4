"""The contract of notifiers: who is told of alerts, and how."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field

from rageval_spec.plugin.plugin import Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.alerts import AlertMessage


class NotifierNode(Node):
    """A block under `notify:` of `monitor:`."""

    name: str | None = Field(
        default=None, min_length=1, description="The name by which alerts choose this notifier. Default: its word."
    )


T = TypeVar("T", bound=NotifierNode)


class Notifier(Plugin[T]):
    """Tells somebody of alerts.

    The monitor writes down what it has to tell before it calls `send`, and that it was told after `send` has returned.
    A process that is killed in between sends the message once more, so a message carries a key that is the same each
    time: `AlertMessage.id`.
    """

    groups: ClassVar[bool] = True
    """Whether `send` gets the alerts that began at one look together. If not, it gets each on its own."""
    refresh_every: ClassVar[float | None] = None
    """After how many seconds the receiver is told once more of what still fires; None if it remembers by itself."""
    patience: ClassVar[float] = 30.0
    """The most seconds that `send` takes. Another process sends what this one has not sent by then."""

    @property
    def name(self) -> str:
        """The name by which alerts choose it."""
        return self.node.name or self.node.use

    @property
    def where(self) -> str:
        """How its messages of errors begin, before a colon."""
        return f"monitor.notify.{self.name}"

    @abstractmethod
    def send(self, messages: Sequence[AlertMessage]) -> None:
        """Send the messages of one group, which began or ended together; at least one.

        Returns once the receiver has them.

        Raises:
            RagevalError: the receiver did not take them; the message begins with `where` and has no secrets. They are
                sent again.
        """

    def refresh(self, messages: Sequence[AlertMessage]) -> None:
        """Tell the receiver that alerts which it knows still fire. Raises `RagevalError` as `send` does."""

    def close(self) -> None:
        """Release what was opened."""
