"""MLflow's traces as traces: their spans have attributes, their information has what was said about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rageval_spec.data.trace import Feedback, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.conventions import load_json
from rageval_spec.exchange.shared.otlp.json_spans import JsonSpanError, decode_json
from rageval_spec.exchange.shared.span_traces import SpanReader
from rageval_spec.exchange.shared.span_values import amount_of, count_of
from rageval_spec.exchange.shared.spans import Span
from rageval_spec.exchange.shared.texts import dump_text

TOOL = "mlflow"
OURS = "rageval-spec"
"""How the sources of our own assessments begin; they are not feedback."""
REFERENCES = ("expected_response", "expected_answer", "expected_output", "reference", "ground_truth", "expected_facts")
_RELEVANT = ("expected_retrieved_context", "expected_documents", "relevant_doc_ids")
_DOCUMENT_IDS = ("doc_uri", "doc_id", "document_id", "id")
_SOURCES = {"HUMAN": "annotator", "LLM_JUDGE": "program", "AI_JUDGE": "program", "CODE": "program"}
_EXTRA = {
    "mlflow.chat.tokenUsage": {"input_tokens": "llm.token_count.prompt", "output_tokens": "llm.token_count.completion"},
    "mlflow.llm.cost": {"total_cost": "llm.cost.total"},
}
"""Attributes that hold several numbers, and OpenInference's name for each."""


def read_trace(info: Mapping[str, Any], spans: Any, reader: SpanReader, experiment: str, place: str) -> Iterator[Trace]:
    """The questions of a trace, from its information and its spans.

    Without spans, as for traces whose spans MLflow stored elsewhere, the information's inputs and outputs count.

    Raises:
        DataError: the trace has no id, or a span cannot be read.
    """
    trace_id = info.get("trace_id")
    if not isinstance(trace_id, str):
        raise DataError(f"{place}: a trace without a trace_id")
    place = f"{place}: trace {trace_id}"
    found = list(_read_spans(spans, place)) or [_read_summary(info, trace_id)]
    for trace in reader.read(found):
        is_only = trace.query_id != ""
        link = TraceLink(TOOL, trace_id, None if is_only else trace.link.span_id, experiment)
        yield _complete(replace(trace, link=link, query_id=trace_id if is_only else ""), info)


def _read_spans(spans: Any, place: str) -> Iterator[Span]:
    if not isinstance(spans, list) or not spans:
        return
    try:
        for span in decode_json({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, f"{place}: "):
            yield span._replace(attributes=_rename(span.attributes))
    except JsonSpanError as error:
        raise DataError(f"{place}: {error}") from None


def _rename(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes, with the numbers that MLflow keeps together under OpenInference's names too."""
    named = dict(attributes)
    for name, parts in _EXTRA.items():
        found = load_json(attributes.get(name))
        if isinstance(found, Mapping):
            named |= {new: found[old] for old, new in parts.items() if found.get(old) is not None and new not in named}
    if (model := load_json(attributes.get("mlflow.llm.model"))) is not None:
        named.setdefault("llm.model_name", model)
    return named


def _read_summary(info: Mapping[str, Any], trace_id: str) -> Span:
    metadata = _read_metadata(info)
    ends = {
        "mlflow.spanInputs": metadata.get("mlflow.traceInputs") or info.get("request_preview"),
        "mlflow.spanOutputs": metadata.get("mlflow.traceOutputs") or info.get("response_preview"),
    }
    status = 2 if info.get("state") == "ERROR" else 0
    return Span(trace_id, "", name="trace", attributes={"mlflow.spanType": "CHAIN", **ends}, status=status)


def _complete(trace: Trace, info: Mapping[str, Any]) -> Trace:
    """The trace with what its information adds: whose it is, what it took, and what was said about it."""
    metadata, tags = _read_metadata(info), info.get("tags")
    own = {key: value for key, value in (tags if isinstance(tags, Mapping) else {}).items() if not _is_internal(key)}
    own |= {key: value for key, value in metadata.items() if not _is_internal(key)}
    tokens, cost = (load_json(metadata.get(f"mlflow.trace.{name}")) for name in ("tokenUsage", "cost"))
    tokens, cost = (found if isinstance(found, Mapping) else {} for found in (tokens, cost))
    said = [one for one in info.get("assessments") or () if isinstance(one, Mapping) and one.get("valid", True)]
    completed = replace(
        trace,
        seconds=_read_seconds(info.get("execution_duration")) if trace.seconds is None else trace.seconds,
        started=trace.started or dump_text(info.get("request_time")),
        input_tokens=count_of(tokens.get("input_tokens")) if trace.input_tokens is None else trace.input_tokens,
        output_tokens=count_of(tokens.get("output_tokens")) if trace.output_tokens is None else trace.output_tokens,
        cost=amount_of(cost.get("total_cost")) if trace.cost is None else trace.cost,
        session=trace.session or dump_text(metadata.get("mlflow.trace.session")),
        user=trace.user or dump_text(metadata.get("mlflow.trace.user")),
        metadata={**trace.metadata, **own},
    )
    expected = {str(one.get("assessment_name")): _value_of(one["expectation"]) for one in said if "expectation" in one}
    feedback = tuple(_read_feedback(one) for one in said if "feedback" in one and not _is_ours(one))
    return add_expectations(replace(completed, feedback=(*completed.feedback, *feedback)), expected)


def add_expectations(trace: Trace, expected: Mapping[str, Any]) -> Trace:
    """The trace with its references and relevant documents, from what people expected; the rest is metadata."""
    name = next((name for name in REFERENCES if dump_text(expected.get(name)) is not None), None)
    documents = next((name for name in _RELEVANT if isinstance(expected.get(name), list)), None)
    relevant = trace.relevant if documents is None else tuple(_list_ids(expected[documents]))
    others = {f"expectation.{key}": value for key, value in expected.items() if key not in (name, documents)}
    return replace(
        trace,
        references=trace.references if name is None else _list_references(expected[name]),
        relevant=relevant,
        metadata={**trace.metadata, **others},
    )


def _list_references(value: Any) -> tuple[str, ...]:
    """One reference: facts that an answer must have are joined."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return (" ".join(value),)
    return (str(dump_text(value)),)


def _list_ids(documents: Sequence[Any]) -> Iterator[str]:
    for document in documents:
        if isinstance(document, str):
            yield document
        elif isinstance(document, Mapping):
            yield from [str(document[key]) for key in _DOCUMENT_IDS if document.get(key) is not None][:1]


def _read_feedback(assessment: Mapping[str, Any]) -> Feedback:
    """A number as value, yes and no as 1 and 0; any other value is the label."""
    value = _value_of(assessment["feedback"])
    source = assessment.get("source")
    source = source if isinstance(source, Mapping) else {}
    number = float(value) if isinstance(value, bool) else None if isinstance(value, str) else amount_of(value)
    return Feedback(
        str(assessment.get("assessment_name") or "feedback"),
        number,
        str(value).lower() if isinstance(value, bool) else dump_text(value) if number is None else None,
        dump_text(assessment.get("rationale")),
        _SOURCES.get(str(source.get("source_type")), "unknown"),  # type: ignore[arg-type] # one of its four words
        dump_text(source.get("source_id")),
    )


def _is_ours(assessment: Mapping[str, Any]) -> bool:
    source = assessment.get("source")
    return isinstance(source, Mapping) and str(source.get("source_id") or "").startswith(OURS)


def _value_of(found: Any) -> Any:
    """The value of a feedback or an expectation; structured values are JSON in a text."""
    if not isinstance(found, Mapping):
        return None
    serialized = found.get("serialized_value")
    if isinstance(serialized, Mapping):
        return load_json(serialized.get("value"))
    return found.get("value")


def _read_metadata(info: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = info.get("trace_metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _is_internal(key: str) -> bool:
    return key.startswith("mlflow.")


def _read_seconds(text: Any) -> float | None:
    """Seconds of `0.026s`."""
    return amount_of(text.removesuffix("s")) if isinstance(text, str) else None


def read_record(found: Mapping[str, Any], dataset: str, place: str) -> Trace:
    """A record of an evaluation dataset as a trace: its inputs, its expectations, and its outputs if it has any.

    Raises:
        DataError: it has no id, or no inputs.
    """
    from rageval_spec.exchange.shared.texts import ANSWER_KEYS, QUESTION_KEYS, pick_text

    record_id = found.get("dataset_record_id")
    question = pick_text(found.get("inputs") or None, QUESTION_KEYS, ("user",))
    if not isinstance(record_id, str) or question is None:
        raise DataError(f"{place}: {'it has no inputs' if isinstance(record_id, str) else 'it has no id'}")
    answer = pick_text(found.get("outputs") or None, ANSWER_KEYS, ("assistant",))
    inputs, tags = found.get("inputs"), found.get("tags")
    others = (
        {f"input.{key}": value for key, value in inputs.items() if value != question}
        if isinstance(inputs, dict)
        else {}
    )
    own = {key: value for key, value in tags.items() if not _is_internal(key)} if isinstance(tags, dict) else {}
    link = TraceLink(TOOL, record_id, others={"dataset": dataset})
    trace = Trace(link, question, query_id=record_id, answer=answer, metadata={**others, **own})
    expectations = found.get("expectations")
    return add_expectations(trace, expectations if isinstance(expectations, Mapping) else {})


def load_records(text: Any, place: str) -> list[dict[str, Any]]:
    """The records in the text of JSON that the server answers with.

    Raises:
        DataError: it is no list of objects.
    """
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise DataError(f"{place}: its records are not a list of objects")
    return found
