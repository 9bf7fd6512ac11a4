"""`cost`: what an answer costs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.sample import Sample
from rageval_spec.metrics.shared.edge_cases import FAILED_SYSTEM
from rageval_spec.metrics.shared.operational import OperationalMetric
from rageval_spec.plugin import MetricInfo, MetricNode

_MILLION = 1_000_000


class Price(BaseModel):
    """What tokens cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False, description="US dollars per million tokens that the model reads.")
    output: float = Field(ge=0, allow_inf_nan=False, description="US dollars per million tokens that it writes.")


class CostNode(MetricNode):
    """US dollars per question."""

    price: Price | None = Field(
        default=None,
        description="Reckon the cost of every answer from its tokens at this price; by default what the system says.",
    )


class Cost(OperationalMetric[CostNode]):
    """US dollars per question."""

    node_type = CostNode
    known_as = ("price", "total_cost")
    hidden = ("price",)
    info = MetricInfo(
        summary="How many US dollars the system's answer to a question costs.",
        formula=(
            "cost = what the system reports; with `price`: (input tokens x price.input + output tokens x "
            "price.output) / 1,000,000"
        ),
        edge_cases=(
            "price: holds for every answer, whatever cost the system reports, so that all are reckoned alike",
            "cost unknown: unscorable; with `price` where a number of tokens is unknown",
            "judges: what they cost is not part of it",
            FAILED_SYSTEM,
        ),
        source="rageval-spec: a sum, since 2026",
        higher_is_better=False,
        bounds=(0.0, None),
        unit="US dollars",
    )

    def read(self, sample: Sample) -> float | str:
        """Dollars."""
        price = self.node.price
        if price is None:
            hint = "; give the metric a 'price:' to reckon it from tokens"
            return f"the system does not say what the answer cost{hint}" if sample.cost is None else sample.cost
        if sample.input_tokens is None or sample.output_tokens is None:
            return "the system does not say its input and output tokens, from which the cost is reckoned"
        return (sample.input_tokens * price.input + sample.output_tokens * price.output) / _MILLION


PLUGIN = Cost
