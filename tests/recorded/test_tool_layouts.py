"""The files of other tools are recognised by their columns. All rows here are made by hand, in the tools' layouts."""

from __future__ import annotations

import pytest

from rageval_spec.recorded.tool_layouts import LAYOUTS, find_layout, name_layout

DEEPEVAL = ("input", "actual_output", "expected_output", "retrieval_context", "context", "name", "source_file")


@pytest.mark.parametrize(
    ("names", "tool"),
    [
        (DEEPEVAL, "DeepEval"),
        (("input", "actualOutput", "expectedOutput", "retrievalContext"), "DeepEval"),
        (("user_input", "retrieved_contexts", "response", "reference"), "ragas"),
        (("question", "contexts", "answer", "ground_truth"), "ragas"),
        (("vars", "assert"), "promptfoo"),
        (("question", "__expected", "__description"), "promptfoo"),
        (("inputs", "expectations", "dataset_record_id"), "MLflow"),
        (("request", "expected_response"), "MLflow"),
        (("id", "inputs", "outputs", "metadata"), "LangSmith"),
        (("id", "inputs", "outputs", "run_type"), "LangSmith"),
        (("inputs.question", "outputs.answer"), "LangSmith"),
        (("id", "input", "expectedOutput", "metadata", "sourceTraceId", "status"), "Langfuse"),
        (("id", "input", "output", "traceId", "totalCost"), "Langfuse"),
        (("id", "input", "expected", "metadata", "tags"), "Braintrust"),
        (("id", "input", "output", "scores", "span_id"), "Braintrust"),
        (("request_id", "title", "collection_ids", "background", "problem_statement", "limit"), "a TREC track"),
        (("topic_id", "title", "user_background", "problem_statement", "language"), "a TREC track"),
        (("id", "title"), "a TREC track"),
        (("id", "narrative"), "a TREC track"),
        (("title", "request_id"), "a TREC track"),
        (("docid", "url", "title", "headings", "body"), "a TREC track"),
        (("run_id", "topic_id", "topic", "context_ids", "answer", "citations"), "a TREC track"),
        (("id", "title", "text"), None),
        (("id", "title", "Frage"), None),
        (("title", "narrative"), None),
        (("id",), None),
        (("topic_id", "question", "title"), None),
        (("answer", "citations", "metadata"), None),
        (("id", "question", "answer"), None),
        (("question", "ground_truth"), None),
        (("question", "context", "answer"), None),
        (("input", "output"), None),
    ],
)
def test_a_tool_is_recognised_by_the_names_of_columns(names: tuple[str, ...], tool: str | None) -> None:
    found = find_layout(names, keeps_lists=False)
    assert (found and found.tool) == tool


def test_only_what_deepeval_itself_writes_has_joined_contexts() -> None:
    found = find_layout(DEEPEVAL, keeps_lists=False)
    assert found is not None and found.joined == ("context", "retrieval_context")
    in_a_document = find_layout(DEEPEVAL, keeps_lists=True)
    assert in_a_document is not None and in_a_document.joined == ()
    by_hand = find_layout(("input", "actual_output", "retrieval_context"), keeps_lists=False)
    assert by_hand is not None and by_hand.joined == ()
    assert all(layout.joined == () for layout in LAYOUTS if layout.word != "deepeval")


def test_a_layout_that_a_spec_names_needs_no_other_sign() -> None:
    assert name_layout("deepeval", ("input", "retrieval_context"), keeps_lists=False).joined
    assert name_layout("langsmith", ("inputs", "outputs"), keeps_lists=False).parts["reference"]
    assert "reference" not in name_layout("langsmith", ("inputs", "outputs", "run_type"), keeps_lists=False).parts
