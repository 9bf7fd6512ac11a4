"""Label Studio: tasks with what people said of them in, and tasks to label out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from rageval_spec.data.traces import Feedback, TraceLink
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, translate_known
from rageval_spec.exchange.shared.scores import list_contexts, list_rows
from rageval_spec.reading.label_files import flatten_tasks, is_task
from rageval_spec.recorded.answers_and_steps import UnusableReplyError

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class LabelStudioSource(RowFileSource):
    """Reads a project's JSON export: the tasks' data as answers, and annotations as feedback."""

    tool = "label_studio"
    summary = "Read a project of Label Studio, exported as JSON: its tasks, with what people said of them."
    examples = ("import label_studio export.json -o labelled.jsonl",)

    def translate(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if not is_task(row):
            raise UnusableReplyError("this is not a task with 'data' and 'annotations'; export the project as JSON")
        data = row["data"]
        number = str(row.get("id", ""))
        known = translate_known(data)
        return {
            **known,
            "id": known.get("id") or number or None,
            "link": TraceLink("label_studio", number) if number else None,
            "feedback": [*_list_labels(row)],
        }


def _list_labels(task: Mapping[str, Any]) -> Iterator[Feedback]:
    for _, label in flatten_tasks([("task", task)]):
        value = label.get("value")
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        yield Feedback(
            str(label.get("metric") or "label"),
            number,
            label=None if number is not None or value is None else str(value),
            comment=label.get("comment") or None,
            source="annotator",
            author=None if label.get("annotator") is None else str(label["annotator"]),
        )


class LabelStudioTarget(FileTarget[TargetNode]):
    """Writes tasks with the values as predictions, and the labelling setup that they fit."""

    filename = "label_studio.json"
    suffixes = (".json",)
    summary = "Write answers as tasks of Label Studio, with their values as predictions, and the labelling setup."
    examples = ("export label_studio rageval-results -o tasks.json",)

    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:
        """The setup, `tasks.xml` in a folder `tasks`, and the tasks."""
        yield f"{name.rpartition('.')[0] or name}.xml", _write_setup(evaluation.metrics).encode()
        tasks = [_make_task(sample, values) for sample, values in list_rows(evaluation)]
        yield "", json.dumps(tasks, ensure_ascii=False, indent=1).encode() + b"\n"


def _make_task(sample: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    data = {
        "id": sample["query_id"],
        "dataset": sample["dataset"],
        "system": sample["system"],
        "question": sample["question"],
        "answer": sample["answer"] or "",
        "contexts": list_contexts(sample),
        "reference": next(iter(sample["references"]), ""),
    }
    result = [
        {"from_name": metric, "to_name": "answer", "type": "number", "value": {"number": one["value"]}}
        for metric, one in values.items()
        if one["value"] is not None
    ]
    return {"data": data, "predictions": [{"model_version": "rageval-spec", "result": result}] if result else []}


def _write_setup(metrics: tuple[str, ...]) -> str:
    controls = "".join(
        f'  <Header value={quoteattr(metric)}/>\n  <Number name={quoteattr(metric)} toName="answer"/>\n'
        for metric in metrics
    )
    return (
        "<View>\n"
        '  <Header value="Question"/>\n  <Text name="question" value="$question"/>\n'
        '  <Header value="Answer"/>\n  <Text name="answer" value="$answer"/>\n'
        '  <Header value="Reference"/>\n  <Text name="reference" value="$reference"/>\n'
        '  <Header value="Contexts"/>\n  <Paragraphs name="contexts" value="$contexts" textKey="text"/>\n'
        f"{controls}"
        '  <TextArea name="comment" toName="answer"/>\n'
        "</View>\n"
    )


SOURCE = LabelStudioSource
TARGET = LabelStudioTarget
