"""The base class of reports that send an evaluation to a tool."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.exchange.shared.contracts import Target, open_part
from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

R = TypeVar("R", bound=ReportNode)


class SendingReport(Report[R]):
    """Sends what is new since the last evaluation into the same folder, once the values are computed.

    Its text, on standard output, says what was sent.
    """

    node_type = ReportNode
    target_type: ClassVar[type[Target[Any]]]
    """What sends the values; the keys of its node are among those of the plugin's."""
    comes_last = True

    def render(self, evaluation: Evaluation) -> bytes:
        """Send what is new since the last time.

        Raises:
            RagevalError: the tool did not take all of it.
        """
        try:
            receipt = send_parcels(self._target, evaluation, self.context.output, tool=self.node.use)
        finally:
            self._target.close()
        return f"{self.node.use}: {receipt.render()}".encode()

    @cached_property
    def _target(self) -> Target[Any]:
        return open_part(self.target_type, self)
