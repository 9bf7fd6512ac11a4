"""Values as annotations of Phoenix's spans, traces and documents.

An annotation is named by the metric and by an identifier that has the evaluation's name, the dataset and the system.
Phoenix replaces an annotation with the same span, name and identifier; those of documents have no identifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec.data.findings import list_findings
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.phoenix.spans import OURS
from rageval_spec.exchange.shared.judgements import Judgements
from rageval_spec.exchange.shared.naming import Names
from rageval_spec.exchange.shared.scores import Score, Scores
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.phoenix.server import Phoenix

RETRIEVER = "retriever"
"""The name of the span that retrieved an answer's documents, in the link to a trace."""
RELEVANCE = "relevance"
"""The name of the annotation with a document's relevance from the dataset."""
_GONE = re.compile(rb"(?:Spans|Traces) with IDs (?P<ids>[0-9a-fA-F, ]+) do not exist")
_OUT_OF_BOUNDS = re.compile(rb"Document position \d+ is out of bounds for span (?P<ids>[0-9a-fA-F]+)")
_SYNC = [("sync", "true")]
"""Without it, Phoenix accepts everything and drops what it cannot use."""


class Annotations:
    """Lists and writes the annotations of one evaluation."""

    def __init__(self, phoenix: Phoenix) -> None:
        """Write nothing yet."""
        self._phoenix = phoenix
        self._scores: Scores | None = None
        self._gone: set[str] = set()
        self._left_out = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """The annotations, in the order of the samples; those of an answer's documents follow its own.

        Raises:
            UsageError: no answer has a trace in Phoenix.
        """
        self._scores = Scores(evaluation, "phoenix")
        judgements, names = Judgements(evaluation), Names()
        last: object = None
        for score in self._scores:
            answer = score.dataset, score.system, score.query_id
            if answer != last:
                last = answer
                yield from _list_relevance(score, names)
            yield _annotate(score, judgements, evaluation.name)
            yield from _list_documents(score, names)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write annotations. Those of spans that Phoenix no longer has are left out and counted.

        Raises:
            ServiceError: Phoenix refused them, or cannot be asked.
        """
        for kind in dict.fromkeys(parcel.kind for parcel in parcels):
            bodies = [parcel.body for parcel in parcels if parcel.kind == kind]
            self._write(f"/v1/{kind.replace(' ', '_')}s", bodies)

    def remarks(self) -> list[str]:
        """What was left out, and why."""
        said = [] if self._scores is None else self._scores.remarks()
        if self._left_out:
            spans = count_noun(len(self._gone), "span")
            told = f"{count_noun(self._left_out, 'annotation')} left out: {spans} not in Phoenix"
            said.append(f"{told}, such as {min(self._gone)}")
        return said

    def _write(self, path: str, bodies: list[dict[str, Any]]) -> None:
        while bodies:
            try:
                self._phoenix.service.post(path, {"data": bodies}, _SYNC)
            except ServiceError as error:
                gone = _find_gone(error)
                rest = [body for body in bodies if _target_of(body) not in gone]
                if len(rest) == len(bodies):
                    raise
                self._gone |= gone
                self._left_out += len(bodies) - len(rest)
                bodies = rest
            else:
                return


def _find_gone(error: ServiceError) -> set[str]:
    """The ids of spans or traces that Phoenix says it does not have, or not with that document."""
    patterns = {404: _GONE, 422: _OUT_OF_BOUNDS}
    found = patterns[error.status].search(error.content) if error.status in patterns else None
    return set() if found is None else {one.strip() for one in found["ids"].decode("ascii").lower().split(",")}


def _target_of(body: Mapping[str, Any]) -> str:
    return str(body.get("span_id", body.get("trace_id"))).lower()


def _annotate(score: Score, judgements: Judgements, name: str) -> Parcel:
    assert score.link is not None, "only answers with a trace are listed"
    level = "trace" if score.link.span_id is None else "span"
    place = score.link.span_id or score.link.trace_id
    identifier = f"{OURS}:{name}/{score.dataset}/{score.system}"
    label, reason = judgements.label(score), judgements.explain(score)
    body = {
        f"{level}_id": place,
        "name": score.metric,
        "annotator_kind": "LLM" if judgements.is_judged(score.metric) else "CODE",
        "identifier": identifier,
        "result": _make_result(score.value, label, reason),
        "metadata": {"evaluation": name, "dataset": score.dataset, "system": score.system, "query_id": score.query_id},
    }
    shown = score.status if score.value is None else f"{score.value:.4g}"
    word = f" ({label})" if label and score.value is not None else ""
    summary = f"{score.metric} {shown}{word} -> {level} {place}"
    return Parcel(f"{level}/{place}/{score.metric}/{identifier}", body, summary, f"{level} annotation")


def _list_documents(score: Score, names: Names) -> Iterator[Parcel]:
    """What a judge said about each context, such as whether it is relevant."""
    if score.details is None or score.link is None or RETRIEVER not in score.link.others:
        return
    value = {"dataset": score.dataset, "system": score.system, "query_id": score.query_id}
    value |= {"metric": score.metric, "details": score.details}
    for one in list_findings(value, score.sample):
        if one["part"] == "contexts" and one["source"] is not None:
            result = _make_result(one["score"], one["verdict"], one["reason"])
            if any(part is not None for part in result.values()):
                span_id = score.link.others[RETRIEVER]
                name = names.choose(span_id, score, score.metric)
                yield _annotate_document(span_id, one["source"], name, result, "LLM")


def _list_relevance(score: Score, names: Names) -> Iterator[Parcel]:
    """The relevance of the contexts that the dataset judges."""
    ids, judged = score.sample.get("context_ids"), score.sample.get("relevant")
    if not ids or judged is None or score.link is None or RETRIEVER not in score.link.others:
        return
    span_id = score.link.others[RETRIEVER]
    name = names.choose(span_id, score, RELEVANCE)
    grades = {one["doc_id"]: one["relevance"] for one in judged}
    for position, doc_id in enumerate(ids):
        if doc_id in grades:
            label = "relevant" if grades[doc_id] > 0 else "not relevant"
            result = _make_result(grades[doc_id], label, f"document {doc_id} in the judgements of {score.dataset}")
            yield _annotate_document(span_id, position, name, result, "CODE")


def _annotate_document(span_id: str, position: int, name: str, result: dict[str, Any], kind: str) -> Parcel:
    body = {
        "span_id": span_id,
        "document_position": position,
        "name": name,
        "annotator_kind": kind,
        "result": result,
    }
    said = result["label"] if result["score"] is None else f"{result['score']:.4g}"
    summary = f"{name} {said} -> document {position} of span {span_id}"
    return Parcel(f"document/{span_id}/{position}/{name}", body, summary, "document annotation")


def _make_result(score: float | None, label: str | None, explanation: str | None) -> dict[str, Any]:
    return {"score": score, "label": label, "explanation": explanation}
