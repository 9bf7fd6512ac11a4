"""Sends values to Langfuse: as scores of the traces that answers were read from, or as a run of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.exchange.langfuse.connection import LangfuseConnection, find_url
from rageval_spec.exchange.shared.experiments import ExperimentNode, ExperimentTarget
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rageval_spec.exchange.langfuse.sending import Sender
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.naming import Names
    from rageval_spec.exchange.shared.scores import Score

TOOL = "langfuse"
RESULTS_FILE = "results.json"
LONGEST_COMMENT = 20_000
"""The most characters of a reason that are sent; a request to Langfuse may have 1 MiB."""


class LangfuseTargetNode(LangfuseConnection, ExperimentNode):
    """Where to send values in Langfuse."""

    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as a run of this dataset, whose items have the ids of the "
        "questions. Default: send the values as scores of the traces that the answers were read from.",
    )
    run: str | None = Field(
        default=None, description="The name of the run; with several systems, its beginning. Default: the spec's name."
    )


class LangfuseTarget(ExperimentTarget[LangfuseTargetNode]):
    """Scores of traces, and runs of datasets (experiments)."""

    node_type = LangfuseTargetNode
    summary = "Send values to Langfuse, as scores of the traces that the answers came from, or as a run of a dataset."
    examples = (
        "export langfuse",
        "export langfuse rageval-results --dry-run",
        "export langfuse --dataset golden --run v2",
    )
    batch = 50
    tool = TOOL

    @property
    def url(self) -> str:
        """The URL of the node, of the environment, or of Langfuse's cloud."""
        return find_url(self.node)

    def open_sender(self) -> Sender:
        """The writing side, in requests of at most 1 MiB."""
        from rageval_spec.exchange.langfuse.connection import connect
        from rageval_spec.exchange.langfuse.sending import Sender

        return Sender(connect(self.node, TOOL), TOOL, self.node.dataset, _read_time(self.context.output))

    def remarks(self) -> Sequence[str]:
        """Also how many answers are to questions that the dataset does not have."""
        found = list(super().remarks())
        if self.sender is not None and self.sender.foreign:
            gone = count_noun(len(self.sender.foreign), "answer")
            found.append(f"{gone} to questions that are no items of the dataset '{self.node.dataset}' left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        """An item of the run of a dataset."""
        from rageval_spec.exchange.shared.payloads import clean

        sample = score.sample
        body = {
            "traceId": _trace_of_run(self.node.dataset or "", run, score.query_id),
            "item": score.query_id,
            "run": run,
            "input": {"question": sample["question"]},
            "output": _list_output(sample),
            "expected": list(sample["references"] or ()),
            "error": sample["error"],
            "seconds": sample["seconds"],
            "usage": {"input": sample["input_tokens"], "output": sample["output_tokens"]},
            "cost": sample["cost"],
        }
        key = f"answer/{self.node.dataset}/{run}/{score.query_id}"
        return Parcel(key, clean(body), f"answer -> item {score.query_id} of the run '{run}'", "answer")

    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A numeric score."""
        from rageval_spec.exchange.shared.identities import make_hex

        link = score.link
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            trace_id, span_id, others = link.trace_id, link.span_id, link.others
            where = f"trace {trace_id}"
        else:
            trace_id, span_id, others = _trace_of_run(self.node.dataset or "", run, score.query_id), None, {}
            where = f"item {score.query_id} of the run '{run}'"
        label = judgements.label(score)
        told = {"label": label, "system": score.system, "dataset": score.dataset, "query_id": score.query_id}
        name = names.choose(f"{trace_id}/{span_id or ''}", score, score.metric)
        identity = make_hex(trace_id, span_id or "", name)
        body = {
            "id": identity,
            "traceId": trace_id,
            "observationId": span_id,
            "name": name,
            "value": score.value,
            "dataType": "NUMERIC",
            "comment": _shorten(judgements.explain(score)),
            "metadata": {"source": "rageval-spec", **{key: value for key, value in told.items() if value is not None}},
            "environment": others.get("environment"),
            # Langfuse replaces a score only if both its id and its time are the same.
            "timestamp": others.get("started"),
        }
        body["item"] = None if run is None else score.query_id
        known = {key: value for key, value in body.items() if value is not None}
        summary = f"{name} {score.value:.2f}{f' ({label})' if label else ''} -> {where}"
        return Parcel(identity, known, summary, "score")


def _read_time(folder: Path | None) -> datetime:
    """When the results in a folder were written, so that a run that is sent again has the same time; else now."""
    from datetime import UTC, datetime

    with suppress(OSError):
        if folder is not None:
            return datetime.fromtimestamp((folder / RESULTS_FILE).stat().st_mtime, UTC)
    return datetime.now(UTC)


def _trace_of_run(dataset: str, run: str, item: str) -> str:
    from rageval_spec.exchange.shared.identities import make_hex

    return make_hex("langfuse", dataset, run, item)


def _shorten(reason: str | None) -> str | None:
    if reason is None or len(reason) <= LONGEST_COMMENT:
        return reason or None
    return f"{reason[: LONGEST_COMMENT - 3]}..."


def _list_output(sample: Any) -> dict[str, Any]:
    texts, ids = sample["contexts"] or (), sample["context_ids"] or ()
    named = len(ids) == len(texts)
    contexts = [{"id": ids[place], "text": text} if named else {"text": text} for place, text in enumerate(texts)]
    return {"answer": sample["answer"], **({"contexts": contexts} if contexts else {})}
