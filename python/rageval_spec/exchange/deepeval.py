"""DeepEval: its goldens, test cases and test runs as files, in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec.data.traces import Feedback, Step
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, add_metadata, pick_columns
from rageval_spec.exchange.shared.scores import drop_unknown, list_rows
from rageval_spec.reading.row_sources import split_joined
from rageval_spec.recorded.answers_and_steps import load_steps
from rageval_spec.recorded.messages import MESSAGES, read_turns
from rageval_spec.recorded.values import load_json

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_NAMES = {
    "question": ("input",),
    "answer": ("actual_output", "actualOutput"),
    "contexts": ("retrieval_context", "retrievalContext"),
    "reference": ("expected_output", "expectedOutput"),
    "reference_contexts": ("context",),
    "id": ("name",),
    "input_tokens": ("input_token_count",),
    "output_tokens": ("output_token_count",),
    "cost": ("token_cost", "evaluationCost"),
    "seconds": ("completion_time", "completionTime"),
}
"""What DeepEval calls each part: in goldens, then in test runs."""
_READ = frozenset({"metricsData", "tools_called", "toolsCalled", "success", "runDuration", "order", "flaky"})


class DeepEvalSource(RowFileSource):
    tool = "deepeval"
    summary = "Read goldens, conversational goldens, test cases or a test run of DeepEval: JSON, JSON Lines or CSV."
    examples = ("import deepeval goldens.json -o golden.jsonl", "import deepeval test_run_20260301_120000.json")
    questions = _NAMES["question"]

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parts under their names here. Joined contexts are split; metrics of a test run become feedback."""
        found, known = pick_columns(row, _NAMES)
        for part in ("contexts", "reference_contexts"):
            found[part] = split_joined(found[part])
        known |= _READ
        if found["question"] is None and read_turns(row.get("turns")) is not None:
            found |= {MESSAGES: row["turns"], "reference": row.get("expected_outcome")}
            known |= {"turns", "expected_outcome"}
        return {
            **found,
            "steps": [*_list_tools(row.get("tools_called") or row.get("toolsCalled"))],
            "feedback": [*_list_metrics(row.get("metricsData"))],
            "metadata": add_metadata(row, known, "additional_metadata", "additionalMetadata"),
        }


def _list_tools(found: Any) -> Iterator[Step]:
    """The calls of tools; in CSV and JSON Lines they can be JSON as text."""
    calls = load_json(found)
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            given = call.get("input_parameters", call.get("inputParameters"))
            output = call.get("output")
            yield Step("tool", str(call.get("name") or ""), _write(given), _write(output))


def _list_metrics(found: Any) -> Iterator[Feedback]:
    for metric in found if isinstance(found, list) else ():
        if isinstance(metric, Mapping) and metric.get("name"):
            score = metric.get("score")
            value = float(score) if isinstance(score, (int, float)) else None
            yield Feedback(str(metric["name"]), value, comment=metric.get("reason") or None, source="program")


def _write_tools(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """The calls of tools among the steps; what was given to a tool is an object there, if it is JSON of one."""
    for step in steps:
        given = load_json(step.input)
        if step.kind == "tool" or (step.kind == "retrieval" and isinstance(given, dict)):
            texts = [document.text or document.doc_id or "" for document in step.documents or ()]
            call = {"name": step.name, "output": step.output if step.documents is None else texts}
            given = given if isinstance(given, dict) or given is None else {"input": given}
            yield drop_unknown({**call, "input_parameters": given})


def _write(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class DeepEvalTarget(FileTarget[TargetNode]):
    """Writes test cases as `EvaluationDataset.add_test_cases_from_json_file` reads them."""

    filename = "deepeval.json"
    suffixes = (".json",)
    summary = "Write answers as test cases of DeepEval: a JSON list, with the value of each metric as a custom column."
    examples = ("export deepeval rageval-results -o deepeval.json",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        cases = []
        for sample, values in list_rows(evaluation):
            columns = {metric: "" if one["value"] is None else repr(one["value"]) for metric, one in values.items()}
            cases.append(
                {
                    "name": sample["query_id"],
                    "input": sample["question"],
                    "actual_output": sample["answer"],
                    "expected_output": next(iter(sample["references"]), None),
                    "context": sample["reference_contexts"],
                    "retrieval_context": sample["contexts"],
                    "tools_called": [*_write_tools(load_steps(sample["steps"]))],
                    "token_cost": sample["cost"],
                    "completion_time": sample["seconds"],
                    "input_token_count": sample["input_tokens"],
                    "output_token_count": sample["output_tokens"],
                    "custom_column_key_values": {"dataset": sample["dataset"], "system": sample["system"], **columns},
                }
            )
        yield "", json.dumps(cases, ensure_ascii=False, indent=1).encode() + b"\n"


SOURCE = DeepEvalSource
TARGET = DeepEvalTarget
