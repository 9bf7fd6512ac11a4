"""The base class of reports that send an evaluation to a tool."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.plugin import Report, ReportNode

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.contracts import Target, TargetNode

R = TypeVar("R", bound=ReportNode)


class SendingReport(Report[R]):
    """Sends the values once they are computed. Its text, on standard output, says what was sent.

    A subclass names its `target_type`; its node inherits from `ReportNode` and from the node of the target.
    """

    target_type: ClassVar[type[Target[Any]]]
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
        fields = self.target_type.node_type.model_fields
        node: TargetNode = self.target_type.node_type(**{name: getattr(self.node, name) for name in fields})
        return self.target_type(node, replace(self.context, models={}, judges={}))
