from typing import Literal

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.answer_metrics import OperationalMetric
from rageval_spec.plugin import MetricInfo, MetricNode


class TokensNode(MetricNode):
    of: Literal["total", "input", "output"] = Field(
        default="total",
        description="Which tokens to count: those that the system's model reads (input), writes (output), or both.",
    )


class TokensMetric(OperationalMetric[TokensNode]):
    known_as = ("token_count", "token_usage")
    info = MetricInfo(
        summary="How many tokens the system's model reads and writes for a question.",
        formula="tokens = input tokens + output tokens, as the system reports them, or the one that `of` names",
        edge_cases=(
            "tokens unknown: unscorable; for the total also if one of the two is unknown",
            "systems with different models: their tokens differ in length; compare `cost` instead",
        ),
        source="rageval-spec: a count, since 2026",
        higher_is_better=False,
        bounds=(0.0, None),
        unit="tokens",
    )

    def read(self, sample: Sample) -> float | str:
        counts = {"input": sample.input_tokens, "output": sample.output_tokens}
        wanted = counts if self.node.of == "total" else {self.node.of: counts[self.node.of]}
        unknown = [kind for kind, count in wanted.items() if count is None]
        if unknown:
            return f"the system does not report its {' and '.join(unknown)} tokens"
        return float(sum(count for count in wanted.values() if count is not None))


PLUGIN = TokensMetric
