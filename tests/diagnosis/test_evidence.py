from __future__ import annotations

import polars as pl

from rageval_spec.data.diagnosis import JUDGED_DOCUMENTS
from rageval_spec.diagnosis.evidence import Choice, choose_metrics, find_judged_contexts
from rageval_spec.spec import loads
from rageval_spec.spec.nodes import DiagnosisNode, NamedMetric

SPEC = """\
version: 1
datasets: {d: {use: jsonl, path: d.jsonl}}
systems: {a: {use: file, path: a.jsonl}}
metrics: [%s]
"""


def metrics(text: str) -> tuple[NamedMetric, ...]:
    return loads(SPEC % text, check_files=False).metrics


def choose(text: str, node: DiagnosisNode | None = None, *, has_judgements: bool = False) -> Choice | None:
    return choose_metrics(node or DiagnosisNode(), metrics(text), has_judgements=has_judgements)


FAITHFULNESS = "{use: faithfulness, judge: overlap}"
RECALL = "{use: context_recall, judge: overlap, as: coverage}"


def test_metrics_are_found_by_their_word_and_called_by_their_name() -> None:
    assert choose(f"token_f1, {RECALL}, {FAITHFULNESS}") == Choice("coverage", "token_f1", "faithfulness")


def test_the_metric_that_says_most_about_correctness_comes_first() -> None:
    found = choose(f"token_f1, {{use: completeness, judge: overlap}}, {RECALL}")
    assert found is not None
    assert found.correctness == "completeness"


def test_judged_documents_take_the_place_of_a_metric() -> None:
    assert choose("token_f1", has_judgements=True) == Choice(JUDGED_DOCUMENTS, "token_f1", None)
    assert choose("token_f1", has_judgements=False) is None


def test_without_a_metric_of_correctness_there_is_no_diagnosis() -> None:
    assert choose(f"{RECALL}, {FAITHFULNESS}", has_judgements=True) is None


def test_the_spec_can_name_other_metrics() -> None:
    node = DiagnosisNode(correctness="exact_match", retrieval="coverage")
    assert choose(f"exact_match, token_f1, {RECALL}", node) == Choice("coverage", "exact_match", None)


ANSWERS = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3", "q4", "q5"],
        "context_ids": [["d1", "d9"], ["d9"], None, ["d1"], []],
    }
)
QRELS = pl.DataFrame(
    {
        "query_id": ["q1", "q2", "q3", "q4", "q5"],
        "doc_id": ["d1", "d2", "d3", "d1", "d5"],
        "relevance": [1, 2, 1, 0, 1],
    }
)


def test_one_relevant_document_among_the_contexts_is_enough() -> None:
    found = dict(find_judged_contexts(ANSWERS, QRELS).iter_rows())
    assert found == {"q1": True, "q2": False, "q3": None, "q4": None, "q5": False}


def test_without_judgements_nothing_is_known() -> None:
    assert find_judged_contexts(ANSWERS, None)["found"].null_count() == 5
