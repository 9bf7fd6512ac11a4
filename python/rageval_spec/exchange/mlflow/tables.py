"""Tables that runs logged, such as `eval_results.json`, as traces: one row, one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rageval_spec.data.trace import Document, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.conventions import load_json
from rageval_spec.exchange.shared.texts import ANSWER_KEYS, QUESTION_KEYS, dump_text, pick_text

_QUESTIONS = ("inputs", "request", *QUESTION_KEYS)
_ANSWERS = ("outputs", "predictions", "prediction", *(key for key in ANSWER_KEYS if key not in ("message", "messages")))
_REFERENCES = ("targets", "target", "ground_truth", "expected_response", "expected_answer", "reference", "expected")
_CONTEXTS = ("contexts", "context", "retrieved_contexts", "retrieved_context", "documents")
_IDS = ("query_id", "id", "trace_id", "request_id")


def read_table(content: Any, run: str, path: str, place: str) -> Iterator[Trace]:
    """The rows of a table as MLflow's `log_table` writes it: `{"columns": [...], "data": [[...]]}`.

    Raises:
        DataError: it is no such table, or a row has no question.
    """
    columns, data = (content.get(key) if isinstance(content, Mapping) else None for key in ("columns", "data"))
    if not isinstance(columns, list) or not isinstance(data, list):
        raise DataError(f"{place}: not a table of MLflow: it has no 'columns' and 'data'")
    question = _find(columns, _QUESTIONS)
    if question is None:
        raise DataError(f"{place}: no column holds the question; the columns are {', '.join(map(str, columns))}")
    for number, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(columns):
            raise DataError(f"{place}: row {number + 1} does not have {len(columns)} values")
        yield _read_row(dict(zip(map(str, columns), row, strict=True)), question, number, run, path, place)


def _read_row(row: dict[str, Any], question: str, number: int, run: str, path: str, place: str) -> Trace:
    text = pick_text(row[question], QUESTION_KEYS, ("user",))
    if text is None:
        raise DataError(f"{place}: row {number + 1} has no text in {question!r}")
    columns = list(row)
    answer, reference, contexts, key = (_find(columns, names) for names in (_ANSWERS, _REFERENCES, _CONTEXTS, _IDS))
    used = {question, answer, reference, contexts, key}
    expected = None if reference is None else pick_text(row[reference], ANSWER_KEYS, ("assistant",))
    return Trace(
        TraceLink("mlflow", f"{run}/{number}", others={"run": run, "table": path}),
        text,
        query_id=(dump_text(row[key]) if key else None) or f"{path}:{number + 1}",
        answer=None if answer is None else pick_text(row[answer], ANSWER_KEYS, ("assistant",)),
        documents=None if contexts is None else _read_documents(row[contexts]),
        references=() if expected is None else (expected,),
        metadata={name: value for name, value in row.items() if name not in used and value is not None},
    )


def _read_documents(value: Any) -> tuple[Document, ...] | None:
    found = load_json(value)
    if found is None:
        return None
    return tuple(_read_document(one) for one in (found if isinstance(found, list) else [found]))


def _read_document(found: Any) -> Document:
    if not isinstance(found, Mapping):
        return Document(str(found))
    text = next((found[key] for key in ("content", "page_content", "text") if key in found), None)
    doc_id = next((found[key] for key in ("doc_uri", "doc_id", "id") if key in found), None)
    return Document(dump_text(text), None if doc_id is None else str(doc_id))


def _find(columns: list[Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in columns), None)
