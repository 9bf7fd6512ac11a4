"""ragas: its samples as JSON Lines, in and out, with a column for each metric."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, pick_columns
from rageval_spec.exchange.shared.scores import drop_unknown, list_rows
from rageval_spec.recorded.messages import MESSAGES

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_NAMES = {
    "question": ("user_input", "question"),
    "answer": ("response", "answer"),
    "contexts": ("retrieved_contexts", "contexts"),
    "context_ids": ("retrieved_context_ids",),
    "reference": ("reference", "ground_truth", "ground_truths"),
    "reference_contexts": ("reference_contexts",),
    "relevant": ("reference_context_ids",),
}
"""What ragas calls each part, the present name first."""


class RagasSource(RowFileSource):
    tool = "ragas"
    summary = "Read samples of ragas: what to_jsonl, to_csv, to_pandas or to_hf_dataset wrote."
    examples = ("import ragas samples.jsonl -o golden.jsonl",)
    questions = _NAMES["question"]

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        found, known = pick_columns(row, _NAMES)
        known |= {"id", "query_id", MESSAGES}
        return {
            **found,
            "id": row.get("query_id", row.get("id")),
            MESSAGES: row.get(MESSAGES),
            "metadata": {name: value for name, value in row.items() if name not in known},
        }


class RagasTarget(FileTarget[TargetNode]):
    """Writes samples as `EvaluationDataset.from_jsonl` reads them, with a number for each metric."""

    filename = "ragas.jsonl"
    suffixes = (".jsonl",)
    summary = "Write answers and values as ragas reads them: JSON Lines of samples, with a column for each metric."
    examples = ("export ragas rageval-results -o ragas.jsonl",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        lines = []
        for sample, values in list_rows(evaluation):
            relevant = sample["relevant"]
            row = {
                "user_input": sample["question"],
                "response": sample["answer"],
                "retrieved_contexts": sample["contexts"],
                "retrieved_context_ids": sample["context_ids"],
                "reference": next(iter(sample["references"]), None),
                "reference_contexts": sample["reference_contexts"],
                "reference_context_ids": relevant and [one["doc_id"] for one in relevant if one["relevance"] > 0],
                "query_id": sample["query_id"],
                "dataset": sample["dataset"],
                "system": sample["system"],
            }
            scored = {metric: values[metric]["value"] if metric in values else None for metric in evaluation.metrics}
            lines.append(json.dumps(drop_unknown(row) | scored))
        yield "", "".join(f"{line}\n" for line in lines).encode()


SOURCE = RagasSource
TARGET = RagasTarget
