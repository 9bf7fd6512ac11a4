"""How the files of other tools are laid out: which columns show that a tool wrote a file, and where its parts are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.libraries import compile_later

Layout = Literal[
    "auto", "none", "braintrust", "deepeval", "langfuse", "langsmith", "mlflow", "promptfoo", "ragas", "trec",
]  # fmt: skip
Condition = Callable[[Collection[str]], bool]
_QUESTION = ("question", "query", "input", "user_input", "prompt", "request", "message", "text")
_REFERENCE = (
    *("answer", "expected_answer", "reference", "ground_truth", "expected_output", "expected", "expected_response"),
    *("reference_answer", "output", "response", "result", "text", "label"),
)
_ANSWER = ("answer", "output", "response", "result", "completion", "generation", "text", "content", "output_text")
_CONTEXTS = (
    "contexts", "retrieved_contexts", "retrieval_context", "context", "source_documents", "documents", "sources",
)  # fmt: skip
_GOLD_CHECKS = (
    *("equals", "similar", "factuality", "model-graded-factuality", "levenshtein", "rouge-n", "bleu", "gleu", "meteor"),
    *("context-recall", "contains", "icontains", "contains-any", "icontains-any"),
)
_PARTIAL_CHECKS = frozenset({"contains", "icontains", "contains-any", "icontains-any"})
"""Checks whose value is a part of a right answer: the gold answer, if no other check has a whole one."""
_CHECK = compile_later(r"\s*(?P<kind>[a-z][a-z-]*)(?:\([^)]*\))?\s*:\s*(?P<value>.*)", re.DOTALL)
_GIVEN = "assert.value"
_ELSEWHERE = "file://"


@dataclass(frozen=True)
class ToolLayout:
    """The layout of a tool's files.

    Attributes:
        word: how a spec names it: `deepeval`.
        tool: the tool's name: `DeepEval`.
        fits: whether a file with columns of these names has this layout.
        parts: where each part of a question or an answer may be, best place first: columns or JSONPaths. Parts that
            are not here have columns with the names that any file may use.
        objects: columns of objects whose only text is a part, whatever its name.
        spread: columns of objects whose entries become columns of their own.
        joined: columns in which several texts are joined by `|`.
        derive: columns that follow from others of a row.
    """

    word: str
    tool: str
    fits: Condition
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    objects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spread: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    derive: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the columns mean the same without knowing the tool."""
        return not (self.parts or self.joined or self.derive)


def find_layout(names: Collection[str], *, keeps_lists: bool) -> ToolLayout | None:
    """The layout of a file with columns of these names; None if it is no tool's.

    In a file that is one JSON document (`keeps_lists`), every tool writes lists as lists.
    """
    found = next((layout for layout in LAYOUTS if layout.fits(names)), None)
    return replace(found, joined=()) if found is not None and keeps_lists else found


def name_layout(word: str, names: Collection[str], *, keeps_lists: bool) -> ToolLayout:
    """The layout that a spec names; of several of one tool, the one that fits the file best."""
    layouts = [layout for layout in LAYOUTS if layout.word == word]
    found = next((layout for layout in layouts if layout.fits(names)), layouts[-1])
    return replace(found, joined=() if keeps_lists else tuple(name for layout in layouts for name in layout.joined))


def _all(
    *wanted: str, one_of: Collection[str] = (), none_of: Collection[str] = ()
) -> Callable[[Collection[str]], bool]:
    def fits(names: Collection[str]) -> bool:
        has_one = not one_of or any(name in names for name in one_of)
        return has_one and all(name in names for name in wanted) and not any(name in names for name in none_of)

    return fits


def _any(*conditions: Callable[[Collection[str]], bool]) -> Callable[[Collection[str]], bool]:
    return lambda names: any(fits(names) for fits in conditions)


def _inside(column: str, names: Collection[str]) -> tuple[str, ...]:
    """The column itself, and the places of a part in objects of this column."""
    return (column, *(f"$.{column}.{name}" for name in names), *(f"{column}.{name}" for name in names))


def _is_promptfoo(names: Collection[str]) -> bool:
    return "vars" in names or any(name.startswith("__expected") for name in names)


def _derive_promptfoo(row: Mapping[str, Any]) -> dict[str, Any]:
    """The gold answers among what a test asserts."""
    for name, value in (row.get("vars") if isinstance(row.get("vars"), Mapping) else {}).items():  # type: ignore[union-attr]
        if isinstance(value, str) and value.startswith(_ELSEWHERE):
            raise ValueError(f"the variable '{name}' is in another file, {value}; write its text here")
    checks = [*_list_asserted(row.get("assert")), *_list_expected(row)]
    given = [value for kind, value in checks if kind not in _PARTIAL_CHECKS] or [value for _, value in checks]
    for value in given:
        if value.startswith(_ELSEWHERE):
            raise ValueError(f"the value of a check is in another file, {value}; write its text here")
    return {_GIVEN: given} if given else {}


def _list_asserted(checks: Any) -> Iterator[tuple[str, str]]:
    """The kind and each value of the checks that have a gold answer."""
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, Mapping) and check.get("type") == "assert-set":
            yield from _list_asserted(check.get("assert"))
        elif isinstance(check, Mapping) and check.get("type") in _GOLD_CHECKS and check.get("value") is not None:
            value = check["value"]
            yield from ((check["type"], str(item)) for item in (value if isinstance(value, list) else [value]))


def _list_expected(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Gold answers in the columns `__expected`, `__expected1`, ... of a CSV file. Text without a type must be equal."""
    for name, value in row.items():
        if not name.startswith("__expected") or not isinstance(value, str) or not value.strip():
            continue
        check = _CHECK.fullmatch(value)
        if check is None or check["kind"] in _GOLD_CHECKS:
            kind, text = ("equals", value) if check is None else (check["kind"], check["value"])
            several = text.split(",") if kind.endswith("-any") else [text]
            yield from ((kind, one.strip() if kind.endswith("-any") else one) for one in several)


_TOPIC_IDS = ("request_id", "topic_id", "narrative_id")
_TOPIC_TEXTS = ("narrative", "topic", "title")
_TOPICS = frozenset({*_TOPIC_IDS, *_TOPIC_TEXTS, "id", "collection_ids", "limit", "word_limit"})
_REQUEST = "request"


def _are_topics(names: Collection[str]) -> bool:
    """Whether a file has topics: requests of RAGTIME, NeuCLIR or AutoJudge, narratives of RAG, articles of DRAGUN."""
    named = {*names}
    is_bare = len(named) > 1 and named <= _TOPICS and not named.isdisjoint({*_TOPIC_IDS, "id"})
    is_request = "problem_statement" in named and not named.isdisjoint(_TOPIC_IDS)
    return (is_bare and not named.isdisjoint(_TOPIC_TEXTS)) or is_request or {"docid", "headings", "body"} <= named


def _join_request(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a report is asked for: the title, the problem, and who asks, or the one text that the topic has."""
    kept = {name: text for name, text in row.items() if isinstance(text, str) and text.strip()}
    told = [kept[name] for name in ("title", "problem_statement", "background", "user_background") if name in kept]
    alone = [kept[name] for name in (*_TOPIC_TEXTS, "problem_statement") if name in kept][:1]
    return {_REQUEST: "\n\n".join(told if len(told) > 1 else alone)} if alone and _REQUEST not in row else {}


_RETRIEVED = "expected_retrieved_context[*]"
_LANGFUSE_IDS = (
    *("sourceTraceId", "source_trace_id", "sourceObservationId", "source_observation_id"),
    *("datasetId", "dataset_id", "datasetName", "dataset_name"),
)
_LANGFUSE_TRACES = (
    *("traceId", "trace_id", "totalCost", "total_cost", "bookmarked", "sessionId", "session_id"),
    *("observations", "traceName", "trace_name"),
)

LAYOUTS: tuple[ToolLayout, ...] = (
    ToolLayout(
        "deepeval",
        "DeepEval",
        _all("input", "actual_output", "expected_output", "retrieval_context", "context"),
        spread=("additional_metadata", "custom_column_key_values"),
        joined=("context", "retrieval_context"),
    ),
    ToolLayout(
        "deepeval",
        "DeepEval",
        _any(
            _all("input", one_of=("actualOutput", "retrievalContext")),
            _all("input", one_of=("actual_output", "retrieval_context", "additional_metadata")),
        ),
        spread=("additionalMetadata", "additional_metadata", "customColumnKeyValues", "custom_column_key_values"),
    ),
    ToolLayout(
        "ragas",
        "ragas",
        _any(
            _all(
                "user_input",
                one_of=("reference", "response", "retrieved_contexts", "reference_contexts", "synthesizer_name"),
            ),
            _all("question", "contexts", one_of=("ground_truth", "ground_truths")),
        ),
    ),
    ToolLayout(
        "promptfoo",
        "promptfoo",
        _is_promptfoo,
        parts={"reference": (_GIVEN, *_REFERENCE[:5]), "text": _QUESTION},
        objects={"text": ("vars",)},
        spread=("metadata",),
        derive=_derive_promptfoo,
    ),
    ToolLayout(
        "mlflow",
        "MLflow",
        _any(
            _all("inputs", one_of=("expectations", "dataset_record_id")),
            _all("request", one_of=("expected_response", "expected_facts", "expected_retrieved_context")),
        ),
        parts={
            "query_id": ("dataset_record_id", "request_id", "id"),
            "text": (*_inside("inputs", _QUESTION), *_inside("request", _QUESTION)),
            "reference": (
                *_inside("expectations", ("expected_response", *_REFERENCE))[1:],
                *("expected_response", "ground_truth"),
            ),
            "relevant": (f"$.expectations.{_RETRIEVED}.doc_uri", f"$.{_RETRIEVED}.doc_uri"),
            "reference_contexts": (f"$.expectations.{_RETRIEVED}.content", f"$.{_RETRIEVED}.content"),
            "answer": (*_inside("outputs", _ANSWER), *_inside("response", _ANSWER)),
            "contexts": ("retrieved_context", *_inside("outputs", _CONTEXTS)[1:]),
            "context_ids": ("$.retrieved_context[*].doc_uri",),
        },
        objects={"text": ("inputs",), "answer": ("outputs",)},
        spread=("tags",),
    ),
    ToolLayout(
        "langsmith",
        "LangSmith",
        _all("inputs", "outputs", "run_type"),  # runs: their outputs are answers, not gold answers
        parts={
            "query_id": ("reference_example_id", "id"),
            "text": _inside("inputs", _QUESTION),
            "answer": _inside("outputs", _ANSWER),
            "contexts": _inside("outputs", _CONTEXTS)[1:],
            "cost": ("total_cost",),
        },
        objects={"text": ("inputs",), "answer": ("outputs",)},
    ),
    ToolLayout(
        "langsmith",
        "LangSmith",
        _any(
            _all("inputs", "outputs"),
            lambda names: any(n.startswith("inputs.") for n in names) and any(n.startswith("outputs.") for n in names),
        ),
        parts={
            "query_id": ("reference_example_id", "example_id", "id"),
            "text": _inside("inputs", _QUESTION),
            "reference": (*_inside("reference_outputs", _REFERENCE), *_inside("outputs", _REFERENCE)),
            "reference_contexts": _inside("outputs", ("reference_contexts", "ground_truth_contexts"))[1:],
            "relevant": _inside("outputs", ("relevant_doc_ids", "relevant", "reference_context_ids"))[1:],
            "answer": _inside("outputs", _ANSWER),
            "contexts": _inside("outputs", _CONTEXTS)[1:],
        },
        objects={"text": ("inputs",), "reference": ("reference_outputs", "outputs"), "answer": ("outputs",)},
        spread=("metadata",),
    ),
    ToolLayout(
        "langfuse",
        "Langfuse",
        _any(
            _all("input", "expectedOutput", one_of=_LANGFUSE_IDS),
            _all("input", "expected_output", one_of=_LANGFUSE_IDS),
            _all("input", "output", one_of=_LANGFUSE_TRACES),
        ),
        parts={
            "query_id": ("id",),
            "text": _inside("input", _QUESTION),
            "reference": (*_inside("expectedOutput", _REFERENCE), *_inside("expected_output", _REFERENCE)),
            "answer": _inside("output", _ANSWER),
            "contexts": _inside("output", _CONTEXTS)[1:],
            "cost": ("totalCost", "total_cost", "cost"),
        },
        objects={"text": ("input",), "reference": ("expectedOutput", "expected_output"), "answer": ("output",)},
        spread=("metadata",),
    ),
    ToolLayout(
        "braintrust",
        "Braintrust",
        _any(_all("input", "expected"), _all("input", "output", one_of=("scores", "span_id", "_xact_id"))),
        parts={
            "query_id": ("id",),
            "text": _inside("input", _QUESTION),
            "reference": _inside("expected", _REFERENCE),
            "relevant": _inside("expected", ("relevant_doc_ids", "relevant"))[1:],
            "answer": _inside("output", _ANSWER),
            "contexts": _inside("output", _CONTEXTS)[1:],
        },
        objects={"text": ("input",), "reference": ("expected",), "answer": ("output",)},
        spread=("metadata",),
    ),
    ToolLayout(
        "trec",
        "a TREC track",
        _are_topics,
        parts={"query_id": (*_TOPIC_IDS, "id", "docid"), "text": (_REQUEST, *_TOPIC_TEXTS, "problem_statement")},
        derive=_join_request,
    ),
    ToolLayout(
        "trec",
        "a TREC track",
        _all("answer", "citations", "run_id"),
        parts={"query_id": _TOPIC_IDS, "text": _TOPIC_TEXTS[:2]},
    ),
)
"""The layouts in the order in which they are tried."""
