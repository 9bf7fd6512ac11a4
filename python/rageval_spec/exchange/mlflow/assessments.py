"""Values as the feedback of MLflow's traces.

Each feedback has an id made from what it is about, so that writing it again changes it and adds none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rageval_spec.endpoints.service import quote_part
from rageval_spec.exchange.mlflow.server import V3
from rageval_spec.exchange.mlflow.traces import OURS, TOOL
from rageval_spec.exchange.shared.judgements import Judgements
from rageval_spec.exchange.shared.scores import Score, Scores
from rageval_spec.exchange.shared.target import Parcel
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.mlflow.server import Mlflow

KIND = "assessment"
_CHANGED = ("feedback", "rationale", "metadata")
"""The parts that are written again if they differ."""
_AT_ONCE = 4


class Assessments:
    """Lists and writes the feedback of one evaluation."""

    def __init__(self, mlflow: Mlflow) -> None:
        """Write nothing yet."""
        self._mlflow = mlflow
        self._scores: Scores | None = None
        self._gone: set[str] = set()
        self._left_out = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """The feedback on each answer that was read from a trace; none if no answer was."""
        self._scores = Scores(evaluation, TOOL)
        judgements = Judgements(evaluation)
        for score in self._scores:
            yield _assess(score, judgements, evaluation.name)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write feedback. That of traces that MLflow no longer has is left out and counted.

        Raises:
            ServiceError: MLflow refused it, or cannot be asked.
        """
        bodies = [parcel.body for parcel in parcels]
        known = self._read_known(list(dict.fromkeys(body["trace_id"] for body in bodies)))
        there = [body for body in bodies if body["trace_id"] in known]
        self._gone |= {body["trace_id"] for body in bodies} - known.keys()
        self._left_out += len(bodies) - len(there)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=TOOL) as executor:
            for _ in executor.map(lambda body: self._write(body, known[body["trace_id"]]), there):
                pass

    def remarks(self) -> list[str]:
        """What was left out, and why."""
        said = [] if self._scores is None else self._scores.remarks()
        if self._left_out:
            traces = count_noun(len(self._gone), "trace")
            told = f"{count_noun(self._left_out, KIND)} left out: {traces} not in MLflow"
            said.append(f"{told}, such as {min(self._gone)}")
        return said

    def _read_known(self, trace_ids: Sequence[str]) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The feedback that each trace has, by its id, for the traces that are there."""
        content = self._mlflow.service.post(f"{V3}/traces/batchGetInfos", {"trace_ids": list(trace_ids)})
        infos = content.get("trace_infos", []) if isinstance(content, Mapping) else []
        return {
            str(info.get("trace_id")): {str(one.get("assessment_id")): one for one in info.get("assessments") or ()}
            for info in infos
            if isinstance(info, Mapping)
        }

    def _write(self, body: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> None:
        path = f"{V3}/traces/{quote_part(body['trace_id'])}/assessments"
        before = known.get(body["assessment_id"])
        if before is None:
            self._mlflow.service.post(path, {"assessment": body}, repeatable=False)
        elif any(before.get(part) != body.get(part) for part in _CHANGED):
            content = json.dumps({"assessment": body, "update_mask": ",".join(_CHANGED)}, allow_nan=False)
            self._mlflow.service.call("PATCH", f"{path}/{quote_part(body['assessment_id'])}", content.encode("ascii"))


def _assess(score: Score, judgements: Judgements, name: str) -> Parcel:
    assert score.link is not None, "only answers with a trace are listed"
    trace_id = score.link.trace_id
    key = f"{trace_id}/{score.link.span_id or ''}/{name}/{score.dataset}/{score.system}/{score.metric}"
    label, reason = judgements.label(score), judgements.explain(score)
    feedback: dict[str, Any] = {"value": score.value}
    if score.value is None:
        feedback["error"] = {"error_code": score.status.upper(), "error_message": reason or score.status}
    metadata = {"evaluation": name, "dataset": score.dataset, "system": score.system, "query_id": score.query_id}
    if label is not None and score.value is not None:
        metadata["label"] = label
    body: dict[str, Any] = {
        "assessment_id": f"a-{hashlib.sha256(key.encode()).hexdigest()[:32]}",
        "assessment_name": score.metric,
        "trace_id": trace_id,
        "source": {"source_type": "LLM_JUDGE" if judgements.is_judged(score.metric) else "CODE", "source_id": OURS},
        "feedback": feedback,
        "metadata": metadata,
    }
    if reason is not None and score.value is not None:
        body["rationale"] = reason
    if score.link.span_id is not None:
        body["span_id"] = score.link.span_id
    shown = score.status if score.value is None else f"{score.value:.4g}"
    word = f" ({label})" if "label" in metadata else ""
    return Parcel(key, body, f"{score.metric} {shown}{word} -> trace {trace_id}", KIND)
