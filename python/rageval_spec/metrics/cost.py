import math

from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import OperationalMetric
from rageval_spec.plugin import MetricInfo, MetricNode

_MILLION = 1_000_000


class TokenPrice(BaseModel):
    """The price of tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, allow_inf_nan=False, description="US dollars per million input tokens.")
    output: float = Field(ge=0, allow_inf_nan=False, description="US dollars per million output tokens.")
    cache_read: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="US dollars per million input tokens that came from the provider's cache. Default: `input`.",
    )
    cache_write: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="US dollars per million input tokens that were written to the provider's cache. Default: `input`.",
    )


class CostNode(MetricNode):
    price: TokenPrice | None = Field(
        default=None,
        description="Compute the cost of every answer from its tokens at this price. By default the cost that the "
        "system reports.",
    )


class Cost(OperationalMetric[CostNode]):
    known_as = ("price", "total_cost")
    hidden = ("price",)
    info = MetricInfo(
        summary="How many US dollars the system's answer to a question costs.",
        formula="cost = what the system reports; with `price`: (input tokens x price.input + output tokens x "
        "price.output) / 1,000,000, where input tokens that were read from a cache or written to it have a price of "
        "their own if `price` names one",
        edge_cases=(
            "price: applies to every answer, even if the system reports a cost, so that all are computed alike",
            "cost unknown: unscorable; with `price`, if a number of tokens is unknown",
            "tokens of the cache: a part of the input tokens, as OpenTelemetry has it; unscorable if those are fewer",
            "tokens of the cache unknown: all input tokens have the price `input`",
            "judges: their cost is not included",
        ),
        source="rageval-spec: a sum, since 2026",
        higher_is_better=False,
        bounds=(0.0, None),
        unit="US dollars",
    )

    def read(self, sample: Sample) -> float | str:
        price = self.node.price
        if price is None:
            hint = "; give the metric a 'price:' to compute it from tokens"
            return f"the system does not report the cost of the answer{hint}" if sample.cost is None else sample.cost
        if sample.input_tokens is None or sample.output_tokens is None:
            return "the system does not report its input and output tokens, which the cost is computed from"
        read, written = sample.cache_read_tokens or 0, sample.cache_write_tokens or 0
        fresh = sample.input_tokens - read - written
        if fresh < 0:
            return f"the {sample.input_tokens} input tokens do not include the {read + written} of the cache"
        read_price = price.input if price.cache_read is None else price.cache_read
        write_price = price.input if price.cache_write is None else price.cache_write
        parts = (fresh * price.input, read * read_price, written * write_price, sample.output_tokens * price.output)
        return math.fsum(parts) / _MILLION


PLUGIN = Cost
