"""Findings are the claims in the details of values, with their documents and places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.findings import (
    FINDINGS,
    Criterion,
    Estimate,
    TextPart,
    Tokens,
    empty_findings,
    is_supported,
    read_part,
    replace_texts,
)
from rageval_spec.data.samples import Sample
from tests.answered_evaluation import BRIDGE, CLAIMS, answered, bridges, sample, value

SAMPLE = Sample(
    "q1", "Why?", "Because.", ("one", "two"), references=("So.", "Thus."), reference_contexts=("three",)
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ("question", ("Why?",)),
        ("answer", ("Because.",)),
        ("reference", ("So.",)),
        ("contexts", ("one", "two")),
        ("reference_contexts", ("three",)),
        ("claims", ()),
    ],
)
def test_the_texts_of_a_part(part: TextPart, texts: tuple[str, ...]) -> None:
    assert read_part(SAMPLE, part) == texts


@pytest.mark.parametrize("part", ["answer", "reference", "contexts", "reference_contexts", "claims"])
def test_an_unknown_part_has_no_texts(part: TextPart) -> None:
    assert read_part(Sample("q1", "Why?"), part) == ()


def test_a_criterion_selects_the_texts_to_judge_and_their_sources() -> None:
    criterion = Criterion("recall", "support", "Is it?", text="contexts", against="reference")
    assert criterion.text_of(SAMPLE) == "one\n\ntwo"
    assert criterion.sources_of(SAMPLE) == ("So.",)


def test_replacing_texts_replaces_claims_or_contexts() -> None:
    claims = replace_texts(SAMPLE, Criterion("brief", "usefulness", "Is it?", text="claims"), ("a",))
    contexts = replace_texts(SAMPLE, Criterion("useful", "usefulness", "Is it?", text="contexts"), ("a",))
    assert (claims.claims, claims.contexts) == (("a",), ("one", "two"))
    assert (contexts.claims, contexts.contexts) == (None, ("a",))


def test_calls_that_two_metrics_share_are_counted_once() -> None:
    first = Estimate({"small": {"a": Tokens(1, 2), "b": Tokens(3, 4)}})
    second = Estimate({"small": {"b": Tokens(3, 4), "c": Tokens(5, 6)}, "large": {"a": Tokens(7, 8)}})
    both = first | second
    assert {model: sorted(calls) for model, calls in both.calls.items()} == {"small": ["a", "b", "c"], "large": ["a"]}
    assert (Estimate() | first).calls == first.calls


def test_a_verdict_decides_and_a_score_only_without_one() -> None:
    assert is_supported("supported", 0.0)
    assert not is_supported("contradicted", 1.0)
    assert not is_supported("unsupported", 1.0)
    assert is_supported(None, 0.5)
    assert not is_supported(None, 0.49)


def rows(details: Any, metric: str = "faithfulness", **changes: Any) -> list[dict[str, Any]]:
    evaluation = answered([value("q1", metric, 0.5, details=details)], [{**BRIDGE, **changes}])
    assert evaluation.findings.columns == list(FINDINGS)
    return evaluation.findings.to_dicts()


def test_a_claim_has_its_place_its_document_and_its_evidence() -> None:
    details = {"claims": list(CLAIMS), "judge": "strict", "decided_by": "nli", "part": "answer", "against": "contexts"}
    first, second = rows(details)
    assert [first["claim"], second["claim"]] == [0, 1]
    assert (second["dataset"], second["system"], second["metric"], second["query_id"]) == (
        "golden", "v1", "faithfulness", "q1",
    )  # fmt: skip
    assert (second["part"], second["text"], second["start"], second["end"]) == (
        "answer", "It was built in 1911.", 26, 47,
    )  # fmt: skip
    assert (second["verdict"], second["score"], second["reason"]) == ("contradicted", 0.0, "the source says 1909")
    assert (first["source"], first["doc_id"], first["evidence"], first["evidence_start"]) == (
        0, "length", "120 m long", 14,
    )  # fmt: skip
    assert (second["source"], second["doc_id"], second["evidence_start"]) == (1, "opening", 3)
    assert (first["judge"], first["step"]) == ("strict", "nli")


def test_details_of_earlier_versions_get_the_parts_of_their_metric() -> None:
    assert {row["part"] for row in rows({"claims": list(CLAIMS)}, "context_recall")} == {"reference"}
    assert {row["part"] for row in rows({"claims": list(CLAIMS)}, "conciseness")} == {"claims"}
    assert {row["part"] for row in rows({"claims": list(CLAIMS)}, "my faithfulness")} == {"answer"}
    assert rows({"claims": list(CLAIMS)})[0]["judge"] is None


def test_evidence_is_found_in_the_text_that_the_claim_was_judged_against() -> None:
    claim = {"text": "It opened in 1909.", "score": 1.0, "source": 0, "evidence": "built in 1909"}
    (found,) = rows({"claims": [claim]}, "noise_sensitivity")
    assert (found["evidence_start"], found["doc_id"]) == (len("The bridge was "), None)


def test_judged_contexts_are_their_own_source() -> None:
    contexts = [{"text": "The bridge", "score": 0.2}, {"text": "It opened", "score": 0.9, "useful": True}]
    found = rows({"contexts": contexts}, "context_precision")
    assert [(one["part"], one["source"], one["doc_id"], one["score"]) for one in found] == [
        ("contexts", 0, "length", 0.2), ("contexts", 1, "opening", 0.9),
    ]  # fmt: skip


def test_claims_of_both_texts_are_numbered_together() -> None:
    both = {"answer": {"claims": [CLAIMS[0]], "decided_by": "nli"}, "reference": {"claims": [CLAIMS[1]]}}
    found = rows(both, "factual_correctness")
    assert [(one["claim"], one["part"], one["step"]) for one in found] == [(0, "answer", "nli"), (1, "reference", None)]


def test_details_without_claims_give_no_findings() -> None:
    by_ids = {"contexts": [{"id": "length", "useful": True}]}
    assert rows({"claims": 0.0, "similarity": 0.0}) == rows(by_ids, "context_precision") == rows({"claims": []}) == []


def test_findings_follow_the_samples_then_the_metrics_and_values_without_a_sample_come_last() -> None:
    names = [("q9", "a"), ("q2", "token_f1"), ("q1", "token_f1"), ("q2", "faithfulness"), ("q1", "faithfulness")]
    values = [value(query, metric, 0.5, details={"claims": [CLAIMS[0]]}) for query, metric in names]
    found = answered(values, [sample("q2"), BRIDGE]).findings
    assert found.select("query_id", "metric").rows() == [
        ("q2", "faithfulness"), ("q2", "token_f1"), ("q1", "faithfulness"), ("q1", "token_f1"), ("q9", "a"),
    ]  # fmt: skip
    assert found["doc_id"].to_list() == [None, None, "length", "length", None]


def test_an_evaluation_without_details_has_no_findings() -> None:
    evaluation = bridges()
    without = answered([{**row, "details": None} for row in evaluation.values.to_dicts()])
    assert without.findings.equals(empty_findings())
    no_column = replace(evaluation, values=evaluation.values.drop("details"))
    assert no_column.findings.equals(empty_findings())


def test_an_evaluation_lists_its_documents_once() -> None:
    both = answered(
        [], [BRIDGE, {**BRIDGE, "query_id": "q2", "contexts": ["It opened in 1909."], "context_ids": ["x"]}]
    )
    assert both.documents.rows() == [
        (0, "length", "The bridge is 120 m long."), (1, "opening", "It opened in 1909."),
        (2, "x", "It opened in 1909."),
    ]  # fmt: skip
    assert both.documents.schema["document"] == pl.Int64
