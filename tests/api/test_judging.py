from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rageval_spec
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError, UsageError

ROWS: list[dict[str, Any]] = [
    {
        "question": "Who wrote it?",
        "answer": "Ada wrote the program.",
        "contexts": ["Ada wrote the program."],
        "reference": "Ada",
        "must": "Ada",
    },
    {"question": "When?", "answer": "In 1950.", "contexts": ["It was 1843."], "reference": "1843", "must": None},
]


def judge(rows: Any = ROWS, metrics: Any = ("faithfulness",), **more: Any) -> rageval_spec.FinishedEvaluation:
    return rageval_spec.judge(rows, metrics, **{"store": None, "quiet": True, **more})


def values(finished: rageval_spec.FinishedEvaluation, metric: str) -> list[float | None]:
    return finished.values.filter(pl.col("metric") == metric)["value"].to_list()


def test_rows_are_judged_offline_without_a_model() -> None:
    metrics = ["faithfulness", "context_precision", "token_f1", {"use": "contains", "column": "must", "as": "must"}]
    finished = judge(metrics=metrics)
    assert values(finished, "faithfulness") == [1.0, 0.0]
    assert values(finished, "must") == [1.0, None]
    assert values(finished, "token_f1")[1] == 0.0
    assert finished.findings["judge"].unique().to_list() == ["overlap"]
    assert (finished.outcome, finished.passed) == ("pass", True)
    card = finished.question("2")
    assert (card.question, card.answer, card.references) == ("When?", "In 1950.", ("1843",))


@pytest.mark.parametrize(
    "row",
    [
        {"user_input": "Who?", "response": "Ada.", "retrieved_contexts": ["Ada."], "reference": "Ada"},
        {"input": "Who?", "actual_output": "Ada.", "retrieval_context": ["Ada."], "expected_output": "Ada"},
        {"question": "Who?", "answer": "Ada.", "contexts": ["Ada."], "ground_truth": "Ada"},
        {"question": "Who?", "answer": "Ada.", "context": ["Ada."], "reference": "Ada"},
    ],
)
def test_the_names_of_other_tools_are_known(row: dict[str, Any]) -> None:
    finished = judge([row], ["faithfulness", "exact_match"])
    assert (values(finished, "faithfulness"), values(finished, "exact_match")) == ([1.0], [1.0])


def test_an_answer_is_never_taken_for_the_gold_answer() -> None:
    finished = judge([{"question": "Who?", "answer": "Ada."}], "token_f1")
    assert finished.values.row(0, named=True)["status"] == "unscorable"


def test_equal_rows_give_equal_results_wherever_they_were() -> None:
    assert judge().report("json") == judge(pl.DataFrame(ROWS)).report("json")
    assert judge().data.spec_digest != judge(metrics=["token_f1"]).data.spec_digest
    assert tempfile.gettempdir() not in str(judge().report("json"))


def test_the_judge_can_be_named_declared_or_made_of_the_first_model() -> None:
    assert judge(judge="embedding").findings["judge"][0] == "embedding"
    cascade = {"use": "cascade", "steps": ["overlap", "mine"]}
    finished = judge(judge=cascade, judges={"mine": {"use": "overlap"}})
    assert values(finished, "faithfulness") == [1.0, 0.0]
    own = [{"use": "faithfulness", "judge": "mine"}]
    assert judge(metrics=own, judges={"mine": {"use": "overlap"}}).findings["judge"][0] == "mine"
    with pytest.raises(UsageError, match="judges: choose another name than 'judge'"):
        judge(judge=cascade, judges={"judge": {"use": "overlap"}})
    gpt = {"use": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0, "timeout": 1}
    failed = judge(models={"gpt": gpt})
    assert failed.outcome == "error"
    assert "127.0.0.1:9" in str(failed.values.row(0, named=True)["reason"])


def test_gates_and_functions_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "judged_checks.py").write_text("def short(answer):\n    return len(answer) < 10\n")
    try:
        finished = judge(
            metrics={"use": "python", "function": "judged_checks:short"},
            folder=tmp_path,
            gates=[{"metric": "short", "min": 0.9}],
        )
    finally:
        sys.path.remove(str(tmp_path.resolve()))
    assert values(finished, "short") == [0.0, 1.0]
    assert (finished.outcome, finished.passed) == ("fail", False)


def test_the_store_is_in_the_folder(tmp_path: Path) -> None:
    judge(judge="embedding", folder=tmp_path, store="beside")
    assert (tmp_path / ".rageval" / "store").is_dir()


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("faithfullness", "metrics.0: unknown measure 'faithfullness'; did you mean 'faithfulness'?"),
        ([{"use": "faithfulness", "jugde": "x"}], "metrics.0.jugde: unknown key 'jugde'; did you mean 'judge'?"),
        ([{"use": "rubric", "criteria": "x"}], "metrics.0: the judge 'overlap' (use: overlap) cannot grade a sample"),
        ([3], "metrics.0: "),
    ],
)
def test_a_wrong_metric_is_a_diagnostic(metrics: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        judge(metrics=metrics)
    assert str(caught.value).startswith(message)


def test_a_wrong_row_is_named_by_its_number() -> None:
    twice = [{**ROWS[0], "id": "x"}, {**ROWS[1], "id": "x"}]
    with pytest.raises(SpecError, match=r"^rows: rows\[1\]: the query 'x' is listed twice, first at rows\[0\]"):
        judge(twice)
    with pytest.raises(SpecError, match=r"^rows: no column 'query', 'question'.*; name the texts 'question' and"):
        judge([{"answer": "a", "contexts": ["x"]}])
    with pytest.raises(DataError, match=r"^rows\[1\]: the query '2' has no text"):
        judge([ROWS[0], {**ROWS[1], "question": None}])


def test_rows_without_answers_are_an_error_that_names_the_columns() -> None:
    with pytest.raises(DataError) as caught:
        judge([{"question": "Who?"}])
    assert str(caught.value) == (
        "rows: no column of answers or contexts; the columns are 'question'; name the texts 'answer' and 'contexts'"
    )


def test_the_word_of_a_judge_asks_the_first_model() -> None:
    models = {"gpt": {"use": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    finished = judge(judge="claims", models=models, limits={"max_errors": 100}, metrics=["faithfulness"])
    assert finished.data.spec["judges"]["claims"]["model"] == "gpt"


def test_what_cannot_be_computed_is_told() -> None:
    assert "\n  failed: ndcg@10 of answers on rows: it cannot be computed" in repr(judge(metrics=["ndcg@10"]))


def test_the_text_form_says_why_nothing_could_be_scored() -> None:
    finished = rageval_spec.judge([{"question": "Who?", "anwser": "Ada.", "contexts": ["Ada."]}], "faithfulness")
    assert "faithfulness: 1 of 1 query could not be scored: the query has no answer" in repr(finished).splitlines()[-1]
