"""`rageval-spec show`: the questions behind the numbers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import Result

from rageval_spec.data.outcomes import collect_base_values
from rageval_spec.drawing.cards import build_card
from rageval_spec.history.saved_evaluations import FOLDER, load_numbers, load_values_of, save_evaluation
from tests.answered_evaluation import BRIDGE, answered, bridges, sample, save, value
from tests.command_line import invoke
from tests.sample_evaluation import HOSTILE
from tests.tiny import write_spec

SECOND = "The bridge was opened by the king."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    save(bridges(), tmp_path / "rageval-results")
    return tmp_path


def show(*arguments: str | Path, **env: str) -> str:
    result = invoke("show", *arguments, env=env)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refuse(*arguments: str) -> str:
    result: Result = invoke("show", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr.removeprefix("rageval-spec: ").rstrip("\n")


def test_the_worst_questions_come_first_each_in_a_few_lines() -> None:
    assert (
        show()
        == """\
support-bot: the worst 3 of 3 questions

q3 · v1 · failed
  Question q3?
  HTTP 500: out of memory

q1 · v1 · token_f1 0.250
  Question q1?
  → The bridge is 120 m long. It was built in 1911.
  ✗ contradicted (faithfulness): It was built in 1911.

q2 · v1 · token_f1 0.900
  Question q2?
  → It was built in 1909.

One question in full: rageval-spec show q3
"""
    )


def test_a_card_marks_unsupported_claims_in_place() -> None:
    assert (
        show("q1")
        == """\
support-bot: question q1, 1 system

q1 · v1 · 1.5 s, $0.002
question    Question q1?

answer      The bridge is 120 m long. [It was built in 1911. ✗1]

            ✗1 contradicted (faithfulness)
               the source says 1909
               nearest: opening (rank 2): “opened in 1909”

reference   The bridge was built in 1909.

values      metric        value
            ───────────────────
            faithfulness  0.500
            token_f1      0.250
            ndcg@10       0.600
            latency       1.500

contexts    rank  grade  document
            ──────────────────────────────────────
               1         length
                         The bridge is 120 m long.
               2      2  opening
                         It opened in 1909.
               –      1  history not retrieved
"""
    )


def test_a_failed_question_says_why() -> None:
    card = show("q3")
    assert "q3 · v1 · failed" in card
    assert "error       HTTP 500: out of memory" in card
    assert "faithfulness      –  there is no answer" in card


def test_colour_is_added_only_where_it_is_wanted() -> None:
    plain, coloured = show("q1"), show("q1", FORCE_COLOR="1")
    assert "\x1b[" not in plain
    assert "\x1b[1;31m[It was built in 1911. ✗1]\x1b[0m" in coloured
    assert show("q1", FORCE_COLOR="1", NO_COLOR="1") == plain


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_no_line_is_wider_than_the_terminal(width: str) -> None:
    for arguments in ([], ["q1"], ["q3"]):
        assert max(map(len, show(*arguments, COLUMNS=width).splitlines())) <= int(width)


def test_the_argument_is_a_query_or_a_folder_and_both_come_in_any_order(here: Path) -> None:
    save(bridges("v2"), here / "other")
    assert "q1 · v2" in show("other")
    assert "q1 · v2" in show("--results", "other")
    assert show("q1", "other") == show("other", "q1") == show("q1", "--results", "other")
    assert "q1 · v2" in show("q1", "other")


def test_a_query_that_is_named_like_a_results_folder_can_be_asked_for(here: Path) -> None:
    save(bridges("v2"), here / "q1")
    assert "q1 · v2" in show("q1")
    assert "q1 · v1" in show("q1", "--results", "rageval-results")


def test_a_label_of_the_history_is_a_folder_too() -> None:
    save_evaluation(bridges("v2"), "main", FOLDER)
    assert "q1 · v2" in show("q1", "main")


def test_filters_compose() -> None:
    assert "q1" not in show("--failed")
    assert "q1 · v1 · faithfulness 0.500" in show("--metric", "faithfulness", "--below", "0.6")
    assert "no question of 3 matches" in show("--metric", "faithfulness", "--below", "0.6", "--failed")
    assert show("--limit", "1").count("Question") == 1
    assert show("q1", "--failed").startswith("support-bot: question q1 does not match the filter")


def test_the_heading_counts_the_questions_that_match() -> None:
    assert show("--metric", "faithfulness", "--below", "0.6").startswith("support-bot: 1 question of 3 matches\n")
    assert show("--metric", "faithfulness", "--limit", "1").startswith("support-bot: the worst 1 of 3 questions\n")


def test_a_path_without_results_is_not_taken_for_a_question() -> None:
    assert refuse("results/monday") == "'results/monday' is neither a results folder nor a question of these results"


def test_regressed_needs_something_to_compare_with() -> None:
    assert refuse("--regressed") == (
        "there is no baseline to compare with: only one system has a value; add --baseline with other results"
    )
    message = "there is no baseline to compare with: only one system has a value of faithfulness"
    assert refuse("--regressed", "--metric", "faithfulness").startswith(message)


def test_changes_are_against_the_baseline(here: Path) -> None:
    save(bridges(shift=0.15), here / "before")
    told = show("q1", "--baseline", "before")
    assert "token_f1      0.250  0.400 (before)  −0.150 worse" in told
    assert "ndcg@10       0.600  0.600 (before)  =\n" in told
    told = show("--regressed", "--baseline", "before")
    assert "q1 · v1 · token_f1 0.250 · was 0.400 (before) · −0.150 worse" in told
    assert "q2" not in told


def test_without_a_baseline_changes_are_against_the_first_system(here: Path) -> None:
    rows = [value("q1", "token_f1", 0.5, "v1"), value("q1", "token_f1", 0.75, "v2")]
    save(answered(rows, [BRIDGE, {**BRIDGE, "system": "v2"}]), here / "two")
    told = show("q1", "two")
    assert "token_f1  0.750  0.500 (v1)  +0.250 better" in told
    markdown = show("q1", "two", "--format", "markdown")
    assert "| baseline |" in markdown and "| was |" not in markdown


def test_values_of_an_earlier_evaluation_with_the_name_of_a_system_were() -> None:
    two = answered(
        [value("q1", "token_f1", 0.5, "v1"), value("q1", "token_f1", 0.75, "v2")], [BRIDGE, {**BRIDGE, "system": "v2"}]
    )
    earlier = {"v1": two.values.with_columns(value=pl.col("value") - 0.25)}
    kept = replace(two, load_base_values=lambda: collect_base_values(two.values, earlier))
    assert build_card(kept, "golden", "v2", "q1").values[0].is_earlier
    assert build_card(two, "golden", "v2", "q1").values[0].is_earlier is False
    assert build_card(two, "golden", "v1", "q1").values[0].is_earlier is None


def test_one_question_shows_the_systems_that_answer_first_the_worst_of_them_before_others(here: Path) -> None:
    """The order of the list: whoever reads it wants to see the answer that is wrong, not a retriever's documents."""
    systems = {"bm25": None, "good": "Yes.", "bad": "No."}
    metrics = {"bm25": ("rr", 0.0), "good": ("token_f1", 1.0), "bad": ("token_f1", 0.25)}
    rows = [value("q1", *metrics[name], name) for name in systems]
    statuses = ("retrieved", "answered", "answered")
    samples = [
        {**BRIDGE, "system": name, "answer": answer, "status": status}
        for (name, answer), status in zip(systems.items(), statuses, strict=True)
    ]
    save(answered(rows, samples), here / "three")
    assert re.findall(r"q1 · (\w+)", show("q1", "three")) == ["bad", "good", "bm25"]
    assert re.findall(r"q1 · (\w+)", show("q1", "three", "--limit", "1")) == ["bad"]


def test_json_has_a_stable_shape() -> None:
    content = json.loads(show("q1", "--format", "json"))
    assert {key: content[key] for key in content if key != "cards"} == {
        "format_version": 1, "name": "support-bot", "results": "rageval-results", "baseline": None, "total": 3,
        "matching": 1, "origins": {},
    }  # fmt: skip
    (card,) = content["cards"]
    assert list(card)[:7] == ["dataset", "system", "query_id", "question", "status", "answer", "error"]
    assert card["marks"][1] == {
        "start": 26, "end": 47, "verdict": "contradicted", "score": 0.0, "metric": "faithfulness",
        "text": "It was built in 1911.", "source": 1, "doc_id": "opening", "evidence": "opened in 1909",
        "reason": "the source says 1909", "evidence_start": 3, "judge": None, "step": None,
    }  # fmt: skip
    assert card["missing"] == [{"doc_id": "history", "grade": 1, "text": None, "rank": None}]


def test_markdown_says_the_same() -> None:
    told = show("q1", "--format", "markdown")
    assert "## `q1` · `v1`" in told
    assert "**Answer:** The bridge is 120 m long. **\\[It was built in 1911. ✗1\\]**" in told
    assert (
        "- ✗1 contradicted (faithfulness)<br>the source says 1909<br>nearest: opening (rank 2): “opened in 1909”"
        in told
    )
    assert "| – | 1 | `history` not retrieved |" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q11"], "there is no question 'q11'; did you mean 'q1'?; the results have 3 questions"),
        (["--metric", "token_f2"], "unknown metric 'token_f2'; did you mean 'token_f1'?"),
        (["--system", "v8"], "unknown system 'v8'; these results have v1"),
        (["--below", "0.5"], "a bound needs a metric"),
        (["q1", "nowhere"], "'nowhere' is neither a results folder nor a label"),
        (["q1", "--baseline", "nowhere"], "'nowhere' is neither a results folder nor a label"),
        (["q1", "q2", "q3"], "expected a query and a results folder, not 3 arguments"),
        (["q1", "q2", "--results", "rageval-results"], "with --results, the only argument is a query"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(arguments: list[str], message: str) -> None:
    assert message in refuse(*arguments)


def test_without_results_an_existing_folder_is_taken_for_one(here: Path) -> None:
    (here / "rageval-results" / "results.json").unlink()
    (here / "data").mkdir()
    assert refuse("data").startswith("data is not a results folder")
    assert refuse("q1").startswith("there are no results in rageval-results")


def hostile(text: str) -> dict[str, Any]:
    return sample("q", question=text, answer=text, references=[text], contexts=[text], context_ids=[text], error=None)


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_texts_of_users_do_nothing(here: Path, form: str) -> None:
    text = f"{HOSTILE}\u202e [bold]x[/bold] \r\x9b31m"
    claim = {"text": text, "start": 0, "end": len(text), "verdict": "contradicted", "score": 0.0, "source": 0,
             "reason": text, "evidence": text}  # fmt: skip
    values = [value("q", "faithfulness", 0.1, reason=text, details={"claims": [claim]})]
    save(replace(answered(values, [hostile(text)]), name=text), here / "bad")
    for arguments in (["bad"], ["q", "bad"]):
        told = show(*arguments, "--format", form)
        assert not {"\x1b", "\x00", "\u202e", "\r", "\x9b"} & set(told)
        if form == "markdown":
            assert "<script>" not in re.sub(r"(`+).*?\1", "", told)
        if form == "text":
            assert "[bold]x[/bold]" in told


def test_enormous_texts_are_cut_and_the_card_says_how_to_see_them(here: Path) -> None:
    long = "x" * 200_000
    save(answered([value("q", "token_f1", 0.1)], [hostile(long)]), here / "long")
    assert len(show("q", "long")) < 20_000
    assert "… (198,000 more characters; show --full has them)" in " ".join(show("q", "long").split())
    assert len(show("long")) < 1_000
    assert show("q", "long", "--full").count("x") >= 800_000


def test_wide_and_right_to_left_texts_keep_their_places(here: Path) -> None:
    from rich.cells import cell_len

    save(answered([value("q", "token_f1", 0.1)], [hostile("橋は一九一一年に建てられた。" * 20)]), here / "cjk")
    assert max(map(cell_len, show("q", "cjk", COLUMNS="80").splitlines())) <= 80
    save(answered([value("q", "token_f1", 0.1)], [hostile("נבנה בשנת 1911")]), here / "rtl")
    assert "נבנה בשנת 1911" in show("q", "rtl")


def test_what_run_wrote_can_be_shown_and_compared(here: Path) -> None:
    spec = write_spec(here, reports=["json", "parquet", "samples"])
    for folder in ("one", "two"):
        assert invoke("run", spec, "-q", "-o", folder).exit_code == 0
    told = show("one", "--system", "good")
    assert told.startswith("tiny: 4 cards of 8 match\n\nq4 · good · ")
    assert "  black cherry\n" in told
    card = show("q4", "one", "--system", "good")
    assert "–      1  d5 not retrieved" in card
    assert "8 pairs of question and system in both: 8 as before" in invoke("compare", "one", "two").stdout


def test_changes_are_against_the_baseline_that_a_gate_names(here: Path) -> None:
    spec = write_spec(here, gates=[])
    assert invoke("run", spec, "-q", "-o", "first", "--save-as", "main").exit_code == 0
    gates = [{"metric": "rr", "baseline": "main", "system": "good"}]
    swapped = {
        name: {"use": "file", "path": f"data/{other}.run"} for name, other in (("good", "tied"), ("tied", "good"))
    }
    spec = write_spec(here, gates=gates, systems=swapped, samples="none")
    result = invoke("run", spec, "-o", "second")
    assert result.exit_code == 0
    assert "q4 · tied · rr 0.000 · was 1.000 (main) · −1.000 worse\n" in result.stdout
    assert result.stderr.splitlines()[-1] == "wrote the results to second"
    for text in (result.stdout, show("second")):
        assert re.search(r"^One question in full: rageval-spec show q\d second$", text, re.MULTILINE)
    assert "rr           1.000  0.500 (main)  +0.500 better" in show("q2", "second", "--system", "tied")
    regressed = show("--regressed", "second")
    assert re.findall(r"^q.*", regressed, re.MULTILINE) == [
        "q4 · tied · rr 0.000 · was 1.000 (main) · −1.000 worse",
        "q2 · good · precision@1 0.000 · was 1.000 (main) · −1.000 worse",
    ]
    shutil.rmtree(here / ".rageval")
    assert show("--regressed", "second", "--baseline", "main") == regressed
    assert "q4 · tied · rr 0.000 · good has 1.000 · −1.000 worse" in show("--regressed", "second", "--baseline", "good")


def test_filters_that_need_the_samples_are_refused_where_the_results_leave_them_out(here: Path) -> None:
    slices = [{"name": "a", "where": {"column": "question", "contains": "a"}}]
    spec = write_spec(here, slices=slices, samples="none")
    assert invoke("run", spec, "-q", "-o", "none").exit_code == 0
    for noun, name in (("slice", "a"), ("cause", "retrieval")):
        assert refuse("none", f"--{noun}", name).startswith(
            f"these results do not record which questions have the {noun} '{name}', "
            "because their spec has 'samples: none'"
        )


def test_a_question_of_two_datasets_has_cards_not_systems(here: Path) -> None:
    samples = [sample("q1", dataset=name) for name in ("golden", "silver")]
    values = [value("q1", "token_f1", 0.5, dataset=name) for name in ("golden", "silver")]
    save(answered(values, samples), here / "two")
    assert show("two", "q1").startswith("support-bot: question q1, 2 cards\n")


@pytest.mark.parametrize("command", ["show", "compare"])
def test_the_help_has_examples_and_every_option_says_what_it_does(command: str) -> None:
    told = invoke(command, "--help").stdout
    assert f"rageval-spec {command} " in told
    assert "At most N questions" in told


def test_a_limit_below_1_is_refused() -> None:
    result = invoke("show", "--limit", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--limit 0: write a whole number from 1" in result.stderr


def test_only_the_values_of_the_shown_questions_are_read_whole(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / "rageval-results" / "values.parquet"
    assert "details" not in load_numbers(path).columns
    assert {"q1"} <= set(load_values_of(path, ["q1"])["query_id"])
    expected = show("q1"), show("--metric", "faithfulness"), show("q1", "--format", "json")

    def refuse_all(*_: object) -> None:
        raise AssertionError("nobody asked for all values")

    monkeypatch.setattr("rageval_spec.history.saved_evaluations.load_numbers", refuse_all)
    assert show("q1") == expected[0]
    assert show("q1", "--format", "json") == expected[2]


def test_the_values_of_a_query_come_with_the_ends_of_each_metric(tmp_path: Path) -> None:
    values = [value(f"q{number:03}", "latency", float(number)) for number in range(300)]
    folder = save(answered(values, []), tmp_path / "many")
    found = load_values_of(folder / "values.parquet", ["q100"])
    assert sorted(found["query_id"]) == ["q000", "q100", "q299"]
