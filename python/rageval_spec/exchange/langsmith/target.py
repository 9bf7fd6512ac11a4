"""Sends values to LangSmith: as feedback on the runs that answers were read from, or as an experiment on a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import Field

from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.connection import LangSmithConnection, find_url
from rageval_spec.exchange.shared.experiments import ExperimentNode, ExperimentTarget
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.exchange.langsmith.sending import Sender
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.naming import Names
    from rageval_spec.exchange.shared.scores import Score

TOOL = "langsmith"
DIGITS = 4
"""The decimal places that LangSmith stores of a score; it refuses more."""
LONGEST_COMMENT = 20_000


class LangSmithTargetNode(LangSmithConnection, ExperimentNode):
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


class LangSmithTarget(ExperimentTarget[LangSmithTargetNode]):
    """Feedback on runs, and experiments on datasets."""

    node_type = LangSmithTargetNode
    summary = "Send values to LangSmith, as feedback on the runs that the answers came from, or as an experiment."
    examples = (
        "export langsmith",
        "export langsmith rageval-results --dry-run",
        "export langsmith --dataset golden --run v2",
    )
    batch = 20
    tool = TOOL

    @property
    def url(self) -> str:
        """The URL of the node, of the environment, or of LangSmith's cloud."""
        return find_url(self.node)

    def open_sender(self) -> Sender:
        """The writing side."""
        from rageval_spec.exchange.langsmith.connection import connect
        from rageval_spec.exchange.langsmith.sending import Sender

        return Sender(connect(self.node, TOOL), TOOL, self.node.dataset)

    def remarks(self) -> Sequence[str]:
        """Also how much feedback is on runs that are gone."""
        found = list(super().remarks())
        if self.sender is not None and self.sender.missing:
            rows = count_noun(self.sender.missing, "feedback row")
            found.append(f"{rows} on runs that LangSmith no longer has left out")
        return found

    def make_answer(self, score: Score, run: str) -> Parcel:
        """A run of the experiment.

        Raises:
            UsageError: the question's id is not the id of an example.
        """
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

    def make_value(self, score: Score, judgements: Judgements, names: Names, run: str | None) -> Parcel:
        """A row of feedback."""
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
