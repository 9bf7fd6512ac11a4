"""Sends values to Braintrust: into the rows that answers were read from, or as an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.data.traces import unwrap
from rageval_spec.errors import UsageError
from rageval_spec.exchange.braintrust.source import OURS, TOOL, BraintrustApi, BraintrustConnection
from rageval_spec.exchange.shared.contracts import Parcel, TargetNode
from rageval_spec.exchange.shared.delivery import make_hex
from rageval_spec.exchange.shared.scores import Judgements, Names, Score, ValueTarget, drop_unknown
from rageval_spec.recorded.values import clean
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

LONGEST_REASON = 20_000


class BraintrustTargetNode(BraintrustConnection, TargetNode):
    project: str | None = Field(
        default=None,
        description="Send the answers with their values as an experiment of this project. Default: add the values to "
        "the rows that the answers were read from.",
    )
    run: str | None = Field(
        default=None,
        description="The name of the experiment; with several systems, its beginning. Default: the spec's name.",
    )


class BraintrustTarget(ValueTarget[BraintrustTargetNode]):
    node_type = BraintrustTargetNode
    summary = "Send values to Braintrust, into the rows that the answers came from, or as an experiment."
    examples = (
        "export braintrust --project support --run nightly",
        "export braintrust rageval-results --dry-run",
    )
    batch = 50
    named = ("project",)
    tool = TOOL
    api: BraintrustApi
    api_type = BraintrustApi

    def __init__(self, node: BraintrustTargetNode, context: Any) -> None:
        super().__init__(node, context)
        self._experiments: dict[str, str] = {}
        self._left_out = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """A row for each answer, with all its values."""
        is_experiment, judgements, names = self.node.project is not None, Judgements(evaluation), Names()
        self._left_out = 0
        name = self.node.run or evaluation.name
        for scores in self.open_scores(evaluation, linked=not is_experiment).answers():
            told = _tell(scores, judgements)
            if is_experiment:
                run = f"{name} {scores[0].system}" if len(evaluation.systems) > 1 else name
                yield self._make_row(scores, told, run)
            elif (parcel := self._make_change(scores, told, names)) is not None:
                yield parcel

    def send(self, parcels: Sequence[Parcel]) -> None:
        where = [(one.body.get("experiment"), one.body.get("object"), one.body.get("object_id")) for one in parcels]
        for place in dict.fromkeys(where):
            rows = [one.body["row"] for one, own in zip(parcels, where, strict=True) if own == place]
            experiment, kind, identity = place
            if experiment is not None:
                if experiment not in self._experiments:
                    self._experiments[experiment] = self.api.open_experiment(self.node.project or "", experiment)
                kind, identity = "experiment", self._experiments[experiment]
            self.api.insert(kind, str(identity), rows)

    def remarks(self) -> list[str]:
        found = super().remarks()
        if self._left_out:
            values = count_noun(self._left_out, "value")
            found.append(f"{values} outside 0 to 1 or without a number left out: Braintrust has no such scores")
        return found

    def _make_row(self, scores: Sequence[Score], told: dict[str, Any], run: str) -> Parcel:
        """A row of an experiment. Values that cannot be scores are metrics there."""
        first, sample = scores[0], scores[0].sample
        identity = make_hex("braintrust", self.node.project or "", run, first.dataset, first.query_id)
        contexts = {"contexts": sample["contexts"]} if sample["contexts"] else {}
        others = {one.metric: one.value for one in scores if one.value is not None and not _is_score(one)}
        measured = {"prompt_tokens": sample["input_tokens"], "completion_tokens": sample["output_tokens"]}
        measured |= {"estimated_cost": sample["cost"], "seconds": sample["seconds"], **others}
        row = {
            "id": identity,
            "input": {"question": sample["question"]},
            "output": None if sample["answer"] is None else {"answer": sample["answer"], **contexts},
            "expected": unwrap(sample["references"] or ()),
            "error": sample["error"],
            "scores": {one.metric: one.value for one in scores if _is_score(one)},
            "metadata": {
                "query_id": first.query_id, "dataset": first.dataset, "system": first.system, OURS: told,
            },
            "metrics": drop_unknown(measured),
        }  # fmt: skip
        summary = f"{_sum_up(scores)} -> {first.query_id} in the experiment '{run}'"
        return Parcel(identity, {"experiment": run, "row": drop_unknown(clean(row))}, summary, "row")

    def _make_change(self, scores: Sequence[Score], told: dict[str, Any], names: Names) -> Parcel | None:
        """What is added to the row that an answer was read from; None if there are no scores to add."""
        link = scores[0].link
        assert link is not None, "only answers with a trace are listed"
        row_id, kind, identity = (link.others.get(key) for key in ("row_id", "object", "object_id"))
        if row_id is None or kind is None or identity is None:
            raise UsageError(
                f"the trace {link.trace_id} was read from a file, which does not record where its row is; read it by "
                "the API, or send an experiment with --project"
            )
        key = f"{identity}/{row_id}"
        renamed = {one.metric: names.choose(key, one, one.metric) for one in scores}
        values = {renamed[one.metric]: one.value for one in scores if _is_score(one)}
        self._left_out += len(scores) - len(values)
        if not values:
            return None
        own = {renamed[one.metric]: told.get(one.metric, {}) for one in scores if renamed[one.metric] in values}
        row = {"id": row_id, "_is_merge": True, "scores": values, "metadata": {OURS: own}}
        body = {"object": kind, "object_id": identity, "row": clean(row)}
        return Parcel(names.choose(key, scores[0], key), body, f"{_sum_up(scores)} -> row {row_id}", "row")


def _is_score(score: Score) -> bool:
    return score.value is not None and 0 <= score.value <= 1


def _tell(scores: Sequence[Score], judgements: Judgements) -> dict[str, Any]:
    """The reason and the word of each value, by metric."""
    told = {}
    for one in scores:
        reason = judgements.explain(one)
        about = {"reason": reason if reason is None else reason[:LONGEST_REASON], "label": judgements.label(one)}
        told[one.metric] = {key: text for key, text in about.items() if text}
    return {metric: about for metric, about in told.items() if about}


def _sum_up(scores: Sequence[Score]) -> str:
    return ", ".join(f"{one.metric} {'-' if one.value is None else f'{one.value:.2f}'}" for one in scores)
