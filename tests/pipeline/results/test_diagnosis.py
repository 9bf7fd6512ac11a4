"""Diagnoses of whole evaluations."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.data.outcomes import JUDGED_DOCUMENTS, NOT_MEASURED, explain_cause
from rageval_spec.pipeline.results.diagnosis import (
    CAUSES,
    DecidingMetrics,
    advise,
    choose_metrics,
    count_causes,
    decide_by_words,
    find_causes,
    find_judged_contexts,
)
from rageval_spec.runner import Options, run
from rageval_spec.spec import loads
from rageval_spec.spec.blocks.gates import NamedMetric
from rageval_spec.spec.blocks.spec_node import DiagnosisNode

LONG = "The old museum of modern art and design was founded by three local families"
QUESTIONS = [
    {"query_id": "q1", "question": "capital of France?", "reference": "Paris"},
    {"query_id": "q2", "question": "capital of Peru?", "reference": "Lima"},
    {"query_id": "q3", "question": "capital of Chad?", "reference": "N'Djamena"},
    {"query_id": "q4", "question": "capital of Mali?", "reference": "Bamako"},
]
ANSWERS = [
    {"query_id": "q1", "answer": "Paris", "context_ids": ["d1"]},
    {"query_id": "q2", "answer": "Quito", "context_ids": ["d2", "d9"]},
    {"query_id": "q3", "answer": "Abuja", "context_ids": ["d9"]},
    {"query_id": "q4", "answer": "Bamako", "context_ids": ["d9"]},
]
SPEC = """\
version: 1
datasets: {golden: {use: jsonl, path: golden.jsonl%s}}
systems: {bot: {use: file, path: answers.jsonl}}
metrics: [%s]
%s
"""


def evaluate(folder: Path, metrics: str = "token_f1", *, judged: bool = True, rest: str = "") -> Evaluation:
    _write(folder / "golden.jsonl", QUESTIONS)
    _write(folder / "answers.jsonl", ANSWERS)
    (folder / "qrels.tsv").write_text("".join(f"q{n}\t0\td{n}\t1\n" for n in range(1, 5)))
    (folder / "spec.yaml").write_text(SPEC % (", qrels: qrels.tsv" if judged else "", metrics, rest))
    return run(folder / "spec.yaml", Options(output=folder / "out", no_store=True)).evaluation


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_every_question_is_counted_under_one_cause(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path).diagnosis
    assert diagnosis is not None
    assert (diagnosis.retrieval, diagnosis.correctness) == (JUDGED_DOCUMENTS, "token_f1")
    assert {count.cause: count.count for count in diagnosis.counts} == {
        "fine": 1, "generation": 1, "retrieval": 1, "lucky": 1,
    }  # fmt: skip
    assert [advice.sentence for advice in diagnosis.advice] == [
        "of 2 wrong answers, 1 did not get what was needed and 1 had it: too few to say what to improve first"
    ]


def test_samples_have_the_cause_of_each_question(tmp_path: Path) -> None:
    samples = evaluate(tmp_path).samples
    assert dict(samples.select("query_id", "cause").iter_rows()) == {
        "q1": "fine", "q2": "generation", "q3": "retrieval", "q4": "lucky",
    }  # fmt: skip


def test_thresholds_can_be_set(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path, rest="diagnosis: {wrong_below: 0, right_from: 0}").diagnosis
    assert diagnosis is not None
    assert {count.cause: count.count for count in diagnosis.counts} == {"fine": 2, "lucky": 2}


def test_without_a_sign_of_retrieval_there_is_no_diagnosis(tmp_path: Path) -> None:
    assert evaluate(tmp_path, judged=False).diagnosis is None


def test_systems_that_only_retrieve_have_none(tmp_path: Path) -> None:
    assert evaluate(tmp_path, metrics="recall@5").diagnosis is None


def test_a_cause_is_explained_by_its_numbers(tmp_path: Path) -> None:
    diagnosis = evaluate(tmp_path).diagnosis
    assert diagnosis is not None
    told = explain_cause(diagnosis, "retrieval", {"token_f1": 0.0})
    assert told == "no relevant document is among the contexts; token_f1 is 0.00"


NODE = DiagnosisNode()
CHOICE = DecidingMetrics("context_recall", "token_f1", "faithfulness")
Row = tuple[float | None, float | None, float | None]
"""The values of context_recall, token_f1 and faithfulness of one question."""


def tabulate(rows: list[Row]) -> pl.DataFrame:
    cells = [
        ("golden", "bot", metric, f"q{place}", value, "scored" if value is not None else "unscorable", None)
        for place, row in enumerate(rows)
        for metric, value in zip(CHOICE, row, strict=True)
    ]
    schema = {
        "dataset": pl.String, "system": pl.String, "metric": pl.String, "query_id": pl.String,
        "value": pl.Float64, "status": pl.String, "reason": pl.String,
    }  # fmt: skip
    return pl.DataFrame(cells, schema=schema, orient="row")


def causes(rows: list[Row], choice: DecidingMetrics = CHOICE) -> list[str]:
    return find_causes(tabulate(rows), choice, NODE, {})["cause"].to_list()


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        ((0.0, 0.1, 0.9), "retrieval"),
        ((0.0, 0.1, None), "retrieval"),
        ((0.0, 0.1, 0.2), "both"),
        ((1.0, 0.1, 0.9), "generation"),
        ((1.0, 0.9, 0.2), "generation"),
        ((0.2, 0.9, 0.9), "lucky"),
        ((0.8, 0.9, 0.9), "fine"),
        ((0.8, 0.9, None), "fine"),
        ((None, 0.1, 0.9), "undecided"),
        ((1.0, None, 0.9), "undecided"),
        ((0.6, 0.1, 0.9), "undecided"),
        ((1.0, 0.6, 0.9), "undecided"),
    ],
)
def test_each_cause(row: Row, cause: str) -> None:
    assert causes([row]) == [cause]


@pytest.mark.parametrize(
    ("value", "cause"), [(0.5, "undecided"), (0.4999, "generation"), (0.7, "fine"), (0.6999, "undecided")]
)
def test_the_thresholds_belong_to_what_is_above_them(value: float, cause: str) -> None:
    assert causes([(1.0, value, None)]) == [cause]


VALUES = st.sampled_from([None, 0.0, 0.49, 0.5, 0.69, 0.7, 1.0])


def name_slowly(row: Row) -> str:
    found, right, faithful = (None if v is None else True if v >= 0.7 else False if v < 0.5 else None for v in row)
    if found is False and right is False:
        return "both" if faithful is False else "retrieval"
    if found is False and right:
        return "lucky"
    if found and (right is False or faithful is False):
        return "generation"
    return "fine" if found and right else "undecided"


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=20))
def test_it_equals_a_slow_reading_of_the_table(rows: list[Row]) -> None:
    assert causes(rows) == [name_slowly(row) for row in rows]


def test_every_combination_has_a_cause() -> None:
    rows = [(a, b, c) for a, b, c in product([None, 0.0, 1.0], repeat=3)]
    assert set(causes(rows)) == set(CAUSES)


def test_judged_documents_decide_where_no_metric_does() -> None:
    judged = {("golden", "bot"): pl.DataFrame({"query_id": ["q0", "q1"], "found": [True, False]})}
    choice = DecidingMetrics(JUDGED_DOCUMENTS, "token_f1", None)
    table = find_causes(tabulate([(0.0, 0.1, None), (1.0, 0.1, None), (1.0, 0.9, None)]), choice, NODE, judged)
    assert table["cause"].to_list() == ["generation", "retrieval", "undecided"]


def test_counts_add_up_and_have_intervals() -> None:
    table = find_causes(tabulate([(0.0, 0.1, None), (0.0, 0.2, None), (1.0, 1.0, 1.0)]), CHOICE, NODE, {})
    counts = list(count_causes(table, 0.95, "difficulty=hard"))
    assert [(c.cause, c.count, c.total, c.slice) for c in counts] == [
        ("retrieval", 2, 3, "difficulty=hard"),
        ("fine", 1, 3, "difficulty=hard"),
    ]
    assert all(c.interval is not None and c.interval.low < c.share < c.interval.high for c in counts)


EVIDENCE_SPEC = """\
version: 1
datasets: {d: {use: jsonl, path: d.jsonl}}
systems: {a: {use: file, path: a.jsonl}}
metrics: [%s]
"""


def metrics(text: str) -> tuple[NamedMetric, ...]:
    return loads(EVIDENCE_SPEC % text, check_files=False).metrics


def choose(text: str, node: DiagnosisNode | None = None, *, has_judgements: bool = False) -> DecidingMetrics | None:
    return choose_metrics(node or DiagnosisNode(), metrics(text), has_judgements=has_judgements)


FAITHFULNESS = "{use: faithfulness, judge: overlap}"
RECALL = "{use: context_recall, judge: overlap, as: coverage}"


def test_metrics_are_found_by_their_word_and_called_by_their_name() -> None:
    assert choose(f"token_f1, {RECALL}, {FAITHFULNESS}") == DecidingMetrics("coverage", "token_f1", "faithfulness")


def test_the_metric_that_says_most_about_correctness_comes_first() -> None:
    found = choose(f"token_f1, {{use: completeness, judge: overlap}}, {RECALL}")
    assert found is not None
    assert found.correctness == "completeness"


def test_judged_documents_take_the_place_of_a_metric() -> None:
    assert choose("token_f1", has_judgements=True) == DecidingMetrics(JUDGED_DOCUMENTS, "token_f1", None)
    assert choose("token_f1", has_judgements=False) is None


def test_without_a_metric_of_correctness_there_is_no_diagnosis() -> None:
    assert choose(f"{RECALL}, {FAITHFULNESS}", has_judgements=True) is None


def test_the_spec_can_name_other_metrics() -> None:
    node = DiagnosisNode(correctness="exact_match", retrieval="coverage")
    assert choose(f"exact_match, token_f1, {RECALL}", node) == DecidingMetrics("coverage", "exact_match", None)


ANSWER_TABLE = pl.DataFrame(
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
    found = dict(find_judged_contexts(ANSWER_TABLE, QRELS).iter_rows())
    assert found == {"q1": True, "q2": False, "q3": None, "q4": None, "q5": False}


def test_without_judgements_nothing_is_known() -> None:
    assert find_judged_contexts(ANSWER_TABLE, None)["found"].null_count() == 5


def sentence(*causes: str, refusals: int = 0, **means: float) -> str | None:
    table = pl.DataFrame(
        {
            "dataset": "golden",
            "system": "bot",
            "query_id": [f"q{place}" for place in range(len(causes))],
            "cause": list(causes),
            "is_refusal": [place < refusals for place in range(len(causes))],
        }
    )
    aggregates = [Aggregate("golden", "bot", word, mean, None, 10, 10) for word, mean in means.items()]
    found = list(advise(table, aggregates, {word: word for word in means}))
    return found[0].sentence if found else None


def test_most_wrong_answers_lack_their_documents() -> None:
    said = sentence(*["retrieval", "both"] * 6, "generation", "fine")
    assert said is not None
    assert said.startswith("12 of 13 wrong answers did not get what they needed: improve retrieval first")


def test_a_reranker_helps_where_few_contexts_are_useful() -> None:
    said = sentence(*["retrieval"] * 6, context_precision=0.2)
    assert said is not None
    assert "reranker" in said


def test_refusals_although_the_answer_was_there_call_for_a_looser_prompt() -> None:
    said = sentence(*["generation"] * 7, "fine", refusals=4)
    assert said == (
        "7 of 7 wrong answers had what they needed in their contexts, and 4 of them refuse: loosen the prompt first"
    )


def test_complete_but_long_answers_call_for_fewer_documents() -> None:
    said = sentence(*["generation"] * 6, completeness=0.9, conciseness=0.3)
    assert said is not None
    assert said.endswith("retrieve fewer documents first")


def test_other_wrong_answers_call_for_a_better_prompt_or_model() -> None:
    said = sentence(*["generation"] * 6, "fine")
    assert said is not None
    assert said.startswith("6 of 6 wrong answers had what they needed in their contexts: tighten the prompt")


def test_luck_is_told() -> None:
    said = sentence("lucky", "fine", "fine")
    assert said is not None
    assert said.startswith("1 of 3 answers is right although its contexts lack what was needed")


def test_where_all_is_well_there_is_nothing_to_say() -> None:
    assert sentence("fine", "fine", "undecided") is None


@pytest.mark.parametrize(
    ("lacking", "generated", "end"),
    [
        (1, 0, "of 1 wrong answer, 1 did not get what was needed and 0 had it: too few to say what to improve first"),
        (0, 1, "of 1 wrong answer, 0 did not get what was needed and 1 had it: too few to say what to improve first"),
        (1, 1, "and 1 had it: too few to say what to improve first"),
        (5, 0, "and 0 had it: too few to say what to improve first"),
        (6, 0, "improve retrieval first, with more documents, a hybrid of retrievers or a reranker"),
        (8, 2, "and 2 had it: too even to say what to improve first"),
        (9, 1, "improve retrieval first, with more documents, a hybrid of retrievers or a reranker"),
        (10, 10, "and 10 had it: too even to say what to improve first"),
        (0, 6, "tighten the prompt or try a stronger model first"),
    ],
)
def test_no_cause_wins_unless_an_exact_test_says_so(lacking: int, generated: int, end: str) -> None:
    said = sentence(*["retrieval"] * lacking, *["generation"] * generated, *["fine"] * 20)
    assert said is not None and said.endswith(end)


@pytest.mark.parametrize(
    ("answer", "reference", "is_right"),
    [
        ("The capital of France is Paris, on the Seine.", "Paris", True),
        ("Refunds are paid within 14 days of the request.", "14 days", True),
        ("Refunds are paid within 30 days of the request.", "14 days", False),
        ("The rate is 12,5 %.", "12.5%", True),
        ("The rate is 125.", "12.5%", False),
        ("It costs $20.", "€20", False),
        ("You have two weeks.", "14 days", True),
        (f"{LONG} in 12,5 % of the cities.", f"{LONG} in 12.5% of the cities.", True),
        ("The capital of France is Lyon, on the Seine.", "Paris", False),
        ("I could not find this in the documents.", "Paris", False),
        (f"{LONG} in 1994 in the city of Rome.", f"{LONG} in 1984 in the city of Rome.", False),
        (f"{LONG} in 1984 in the city of Oslo.", f"{LONG} in 1984 in the city of Rome.", False),
        (f"{LONG} in 1984 in the city of Rome.", f"{LONG} in 1984 in the city of Rome.", True),
        (f"In Rome, in 1984, {LONG.lower()}.", f"{LONG} in 1984 in the city of Rome.", True),
        ("", "Paris", False),
    ],
)
def test_words_tell_right_answers_from_wrong_ones(answer: str, reference: str, is_right: bool) -> None:
    assert decide_by_words(answer, [reference], "What is it?", 0.5, 0.7) is is_right
    assert decide_by_words(answer, ["something else", reference], "What is it?", 0.5, 0.7) is is_right


def test_without_a_metric_of_retrieval_faithfulness_tells_contexts_from_inventions(tmp_path: Path) -> None:
    rows = [("fine", "Paris is the capital.", "Paris is the capital."), ("used", "Lyon is the capital.", "Paris"),
            ("invented", "Oslo has fjords.", "Paris")]  # fmt: skip
    _write(
        tmp_path / "golden.jsonl", [{"query_id": name, "question": "?", "reference": gold} for name, _, gold in rows]
    )
    contexts = ["Paris is the capital. Lyon is the capital."]
    _write(tmp_path / "answers.jsonl", [{"query_id": n, "answer": said, "contexts": contexts} for n, said, _ in rows])
    (tmp_path / "spec.yaml").write_text(SPEC % ("", "token_f1, {use: faithfulness, judge: overlap}", ""))
    evaluation = run(tmp_path / "spec.yaml", Options(output=tmp_path / "out", no_store=True)).evaluation
    assert dict(evaluation.samples.select("query_id", "cause").iter_rows()) == {
        "fine": "fine", "used": "retrieval", "invented": "generation",
    }  # fmt: skip
    assert evaluation.diagnosis is not None and evaluation.diagnosis.retrieval == NOT_MEASURED
    (note,) = [note for note in evaluation.notes if note.code == "diagnosis"]
    assert note.message.startswith("nothing measures retrieval, so")
