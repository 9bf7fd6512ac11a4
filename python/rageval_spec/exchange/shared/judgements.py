"""What a value means, in words that a tool can show beside it: the reason, the label, and who judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rageval_spec.data.findings import list_findings

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.scores import Score

_MOST_CLAIMS = 5
"""Claims that a reason quotes."""
_MOST_CHARACTERS = 300
"""Characters of a claim or of a judge's remark that a reason quotes."""
_GOOD = "supported"


class Judgements:
    """Words for the values of one evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        """Read nothing yet."""
        self._evaluation = evaluation

    def explain(self, score: Score) -> str | None:
        """Why the value is what it is: the metric's reason, and the claims that were not supported; None if unknown."""
        told = [score.reason.strip()] if score.reason and score.reason.strip() else []
        if score.details is not None and score.status == "scored":
            value = {"dataset": score.dataset, "system": score.system, "query_id": score.query_id}
            value |= {"metric": score.metric, "details": score.details}
            told += _describe_claims(list(list_findings(value, score.sample)))
        return "\n".join(told) or None

    def label(self, score: Score) -> str | None:
        """The word of the metric's scale, None without one; the status if there is no value."""
        if score.value is None:
            return score.status
        scale = self._evaluation.bands.get(score.metric)
        return None if scale is None else scale.find(score.value).word

    def is_judged(self, metric: str) -> bool:
        """Whether a judge decided the values of a metric."""
        return metric in self._judged

    @cached_property
    def _judged(self) -> frozenset[str]:
        """The metrics whose block names a judge; the blocks are in the order of the evaluation's metrics."""
        blocks, metrics = self._evaluation.spec.get("metrics") or (), self._evaluation.metrics
        named = [block for block in blocks if isinstance(block, dict) and block.get("judge")]
        in_order = zip(metrics, blocks, strict=True) if len(blocks) == len(metrics) else ()
        judged = {metric for metric, block in in_order if block in named}
        return frozenset(judged | {str(block.get("as") or block.get("use")) for block in named})


def _describe_claims(findings: Sequence[dict[str, Any]]) -> list[str]:
    decided = [one for one in findings if one["verdict"] is not None]
    if not decided:
        return [_quote(one["reason"]) for one in findings[:1] if one["reason"]]
    counts = Counter(one["verdict"] for one in decided)
    told = [
        ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in sorted(counts.items(), key=_order))
    ]
    bad = [one for one in decided if one["verdict"] != _GOOD]
    for one in bad[:_MOST_CLAIMS]:
        because = f": {_quote(one['reason'])}" if one["reason"] else ""
        told.append(f'{one["verdict"].replace("_", " ")}: "{_quote(one["text"] or "")}"{because}')
    if len(bad) > _MOST_CLAIMS:
        told.append(f"and {len(bad) - _MOST_CLAIMS} more")
    return told


def _order(pair: tuple[str, int]) -> tuple[bool, str]:
    return pair[0] != _GOOD, pair[0]


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
