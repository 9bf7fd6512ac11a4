"""Sends values to LangSmith: as feedback on the runs that answers were read from, or as an experiment on a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import Field

from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.connection import LangSmithConnection, find_url
from rageval_spec.exchange.shared.target import Parcel, Target, TargetNode
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.langsmith.sending import Sender
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.naming import Names
    from rageval_spec.exchange.shared.scores import Score, Scores

TOOL = "langsmith"
DIGITS = 4
"""The decimal places that LangSmith stores of a score; it refuses more."""
LONGEST_COMMENT = 20_000


class LangSmithTargetNode(LangSmithConnection, TargetNode):
    """Where to send values in LangSmith."""

    dataset: str | None = Field(
        default=None,
        description="Send the answers with their values as an experiment on this dataset, whose examples have the "
        "ids of the questions. Default: send the values as feedback on the runs that the answers were read from.",
    )
    run: str | None = Field(
        default=None,
        description="The name of the experiment; with several systems, its beginning. Default: the spec's name.",
    )


class LangSmithTarget(Target[LangSmithTargetNode]):
    """Feedback on runs, and experiments on datasets."""

    node_type = LangSmithTargetNode
    summary = "Send values to LangSmith, as feedback on the runs that the answers came from, or as an experiment."
    examples = (
        "export langsmith",
        "export langsmith rageval-results --dry-run",
        "export langsmith --dataset golden --run v2",
    )
    batch = 20

    def __init__(self, node: LangSmithTargetNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._sender: Sender | None = None
        self._scores: Scores | None = None
        self._without_value = 0

    @property
    def destination(self) -> str:
        """The URL, and the dataset if an experiment is sent."""
        url = find_url(self.node)
        return url if self.node.dataset is None else f"{url}, dataset {self.node.dataset}"

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """Feedback for each value; before the feedback of an experiment, its answers.

        Raises:
            UsageError: no answer was read from LangSmith and no dataset is named, or a question's id is no example's.
        """
        from rageval_spec.exchange.shared.judgements import Judgements
        from rageval_spec.exchange.shared.naming import Names
        from rageval_spec.exchange.shared.scores import Scores

        is_experiment, judgements, names = self.node.dataset is not None, Judgements(evaluation), Names()
        self._scores = Scores(evaluation, None if is_experiment else TOOL)
        self._without_value = 0
        name = self.node.run or evaluation.name
        answered: tuple[str, str, str] | None = None
        for score in self._scores:
            run = f"{name} {score.system}" if len(evaluation.systems) > 1 else name
            answer = (score.dataset, score.system, score.query_id)
            if is_experiment and answer != answered:
                answered = answer
                yield self._make_answer(score, run)
            if score.value is None:
                self._without_value += 1
            else:
                yield self._make_feedback(score, judgements, names, run if is_experiment else None)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels.

        Raises:
            UsageError: there is no key.
            DataError: there is no such dataset.
            ServiceError: LangSmith did not take all of them.
        """
        if self._sender is None:
            from rageval_spec.exchange.langsmith.connection import connect
            from rageval_spec.exchange.langsmith.sending import Sender

            self._sender = Sender(connect(self.node, TOOL), TOOL, self.node.dataset)
        self._sender.send([parcel.body for parcel in parcels])

    def remarks(self) -> Sequence[str]:
        """How many answers have no run, and how many values are none."""
        found = list(self._scores.remarks()) if self._scores is not None else []
        if self._without_value:
            found.append(f"{count_noun(self._without_value, 'answer')} that a metric could not score left out")
        if self._sender is not None and self._sender.missing:
            found.append(
                f"{count_noun(self._sender.missing, 'feedback row')} on runs that LangSmith no longer has left out"
            )
        return found

    def close(self) -> None:
        """Close the connections."""
        if self._sender is not None:
            self._sender.close()

    def _make_answer(self, score: Score, run: str) -> Parcel:
        from rageval_spec.exchange.shared.payloads import clean

        sample, texts = score.sample, score.sample["contexts"]
        _check_example(score.query_id, self.node.dataset or "")
        outputs = {"answer": sample["answer"], **({"contexts": texts} if texts else {})}
        body = {
            "id": _run_of(self.node.dataset or "", run, score.query_id),
            "experiment": run,
            "name": score.system,
            "run_type": "chain",
            "inputs": {"question": sample["question"]},
            "outputs": outputs if sample["answer"] is not None else None,
            "error": sample["error"],
            "reference_example_id": score.query_id,
            "seconds": sample["seconds"],
        }
        return Parcel(f"answer/{body['id']}", clean(body), f"answer -> example {score.query_id} in '{run}'", "answer")

    def _make_feedback(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        from rageval_spec.exchange.shared.identities import make_uuid

        link = score.link
        if run is None:
            assert link is not None, "only answers with a trace are listed"
            run_id, session, where = (
                link.span_id or link.trace_id,
                link.others.get("session_id"),
                f"run {link.trace_id}",
            )
            trace_id = link.trace_id
        else:
            run_id = trace_id = _run_of(self.node.dataset or "", run, score.query_id)
            session, where = None, f"example {score.query_id} in '{run}'"
        name = names.choose(run_id, score, score.metric)
        label = judgements.label(score)
        told = {"system": score.system, "dataset": score.dataset, "query_id": score.query_id}
        body = {
            "id": make_uuid("feedback", run_id, name),
            "run_id": run_id,
            "trace_id": trace_id,
            "key": name,
            "score": round(score.value or 0.0, DIGITS),
            "value": label,
            "comment": _shorten(judgements.explain(score)),
            "session_id": session,
            "experiment": run,
            "feedback_source": {
                "type": "model" if judgements.is_judged(score.metric) else "api",
                "metadata": {"source": "rageval-spec", **told},
            },
        }
        known = {key: value for key, value in body.items() if value is not None}
        summary = f"{name} {score.value:.2f}{f' ({label})' if label else ''} -> {where}"
        return Parcel(str(body["id"]), known, summary, "feedback row")


def _run_of(dataset: str, experiment: str, example: str) -> str:
    from rageval_spec.exchange.shared.identities import make_uuid

    return make_uuid("run", dataset, experiment, example)


def _check_example(query_id: str, dataset: str) -> None:
    try:
        UUID(query_id)
    except ValueError:
        raise UsageError(
            f"the question '{query_id}' has no id of an example of LangSmith; read the questions from there: "
            f"datasets: {{golden: {{use: langsmith, dataset: {dataset}}}}}"
        ) from None


def _shorten(reason: str | None) -> str | None:
    if reason is None or len(reason) <= LONGEST_COMMENT:
        return reason
    return f"{reason[: LONGEST_COMMENT - 3]}..."
