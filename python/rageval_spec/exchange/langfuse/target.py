"""Sends values to Langfuse: as scores of the traces that answers were read from, or as a run of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec.exchange.langfuse.connection import LangfuseConnection, find_url
from rageval_spec.exchange.shared.target import Parcel, Target, TargetNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.langfuse.sending import Sender
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.naming import Names
    from rageval_spec.exchange.shared.scores import Score, Scores

TOOL = "langfuse"
RESULTS_FILE = "results.json"
LONGEST_COMMENT = 20_000
"""The most characters of a reason that are sent; a request to Langfuse may have 1 MiB."""


class LangfuseTargetNode(LangfuseConnection, TargetNode):
    """Where to send values in Langfuse."""

    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as a run of this dataset, whose items have the ids of the "
        "questions. Default: send the values as scores of the traces that the answers were read from.",
    )
    run: str | None = Field(
        default=None, description="The name of the run; with several systems, its beginning. Default: the spec's name."
    )


class LangfuseTarget(Target[LangfuseTargetNode]):
    """Scores of traces, and runs of datasets (experiments)."""

    node_type = LangfuseTargetNode
    summary = "Send values to Langfuse, as scores of the traces that the answers came from, or as a run of a dataset."
    examples = (
        "export langfuse",
        "export langfuse rageval-results --dry-run",
        "export langfuse --dataset golden --run v2",
    )
    batch = 50

    def __init__(self, node: LangfuseTargetNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._sender: Sender | None = None
        self._scores: Scores | None = None
        self._without_value = 0

    @property
    def destination(self) -> str:
        """The URL, and the dataset if a run of one is sent."""
        url = find_url(self.node)
        return url if self.node.dataset is None else f"{url}, dataset {self.node.dataset}"

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """A score for each value; before the scores of a dataset's run, its answers.

        Raises:
            UsageError: no answer was read from Langfuse, and no dataset is named.
        """
        from rageval_spec.exchange.shared.judgements import Judgements
        from rageval_spec.exchange.shared.naming import Names
        from rageval_spec.exchange.shared.scores import Scores

        judgements, names = Judgements(evaluation), Names()
        is_run = self.node.dataset is not None
        self._scores = Scores(evaluation, None if is_run else TOOL)
        self._without_value = 0
        several = len(set(evaluation.systems)) > 1
        answered: tuple[str, str, str] | None = None
        for score in self._scores:
            answer = (score.dataset, score.system, score.query_id)
            if is_run and answer != answered:
                answered = answer
                yield self._make_answer(score, self._name_run(evaluation, score.system, several=several))
            if score.value is None:
                self._without_value += 1
            else:
                run = self._name_run(evaluation, score.system, several=several) if is_run else None
                yield self._make_score(score, judgements, names, run)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels, in requests of at most 1 MiB.

        Raises:
            UsageError: there are no keys.
            DataError: there is no such dataset.
            ServiceError: Langfuse did not take all of them.
        """
        if self._sender is None:
            from rageval_spec.exchange.langfuse.connection import connect
            from rageval_spec.exchange.langfuse.sending import Sender

            self._sender = Sender(connect(self.node, TOOL), TOOL, self.node.dataset, _read_time(self.context.output))
        self._sender.send([parcel.body for parcel in parcels])

    def remarks(self) -> Sequence[str]:
        """How many answers have no trace, and how many values are none."""
        found = list(self._scores.remarks()) if self._scores is not None else []
        if self._without_value:
            found.append(
                f"{count_noun(self._without_value, 'answer')} that a metric could not score left out: "
                "Langfuse has no score without a value"
            )
        if self._sender is not None and self._sender.foreign:
            gone = count_noun(len(self._sender.foreign), "answer")
            found.append(f"{gone} to questions that are no items of the dataset '{self.node.dataset}' left out")
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._sender is not None:
            self._sender.close()

    def _name_run(self, evaluation: Evaluation, system: str, *, several: bool) -> str:
        name = self.node.run or evaluation.name
        return f"{name} {system}" if several else name

    def _make_answer(self, score: Score, run: str) -> Parcel:
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

    def _make_score(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
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
