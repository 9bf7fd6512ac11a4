""""""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from rageval_spec.api.finished_evaluation import FinishedEvaluation, load_results
from rageval_spec.data.evaluation import SliceResult
from rageval_spec.data.outcomes import Note, Verdict
from rageval_spec.data.tables import SampleTable
from rageval_spec.errors import DataError, UsageError
from tests.answered_evaluation import bridges
from tests.sample_evaluation import HOSTILE, make_evaluation

EVALUATION = make_evaluation()
FIRST, SECOND = bridges("v1"), bridges("v2", 0.25)
VALUES, SAMPLES = (pl.concat(pair) for pair in ((FIRST.values, SECOND.values), (FIRST.samples, SECOND.samples)))
BRIDGES = replace(FIRST, systems=("v1", "v2"), values=VALUES, sample_table=SampleTable(lambda: [SAMPLES]))


def test_the_aggregates_are_a_frame_with_the_slices_last() -> None:
    mean = replace(EVALUATION.aggregates[0], slice="difficulty=hard", mean=None, interval=None, scored=0)
    difference = replace(EVALUATION.comparisons[0], slice="difficulty=hard")
    hard = SliceResult("golden", "difficulty=hard", "difficulty", "difficulty is hard", 3, (mean,), (difference,))
    finished = FinishedEvaluation(replace(EVALUATION, slices=(hard,)))
    table = finished.aggregates
    first, last = table.row(0, named=True), table.row(-1, named=True)
    interval = EVALUATION.aggregates[0].interval
    assert interval is not None
    assert table.height == len(EVALUATION.aggregates) + 1
    assert (first["system"], first["metric"], first["slice"]) == ("bm25", "ndcg@10", None)
    assert (first["mean"], first["low"], first["confidence"]) == (0.41234, interval.low, 0.95)
    assert (last["slice"], last["mean"], last["low"], last["scored"]) == ("difficulty=hard", None, None, 0)
    tests = finished.comparisons
    assert tests.height == len(EVALUATION.comparisons) + 1
    assert tests.row(-1, named=True)["slice"] == "difficulty=hard"
    assert tests.row(0, named=True)["p_adjusted"] == EVALUATION.comparisons[0].p_adjusted


def test_frames_become_pandas() -> None:
    frame = FinishedEvaluation(EVALUATION).aggregates.to_pandas()
    assert list(frame["metric"])[:2] == ["ndcg@10", "ndcg@10"]


def test_empty_results_have_all_columns() -> None:
    bare = FinishedEvaluation(replace(EVALUATION, aggregates=(), comparisons=()))
    assert (bare.aggregates.height, bare.comparisons.height) == (0, 0)
    assert bare.aggregates.schema == FinishedEvaluation(EVALUATION).aggregates.schema
    assert "error" in repr(bare)


def test_the_outcome_is_the_worst_gate_or_an_error() -> None:
    passed = tuple(replace(gate, outcome="pass") for gate in EVALUATION.gates)
    outcomes: tuple[tuple[Verdict, bool], ...] = (("pass", True), ("warn", True), ("fail", False))
    for outcome, ok in outcomes:
        gates = (*passed, replace(passed[0], outcome=outcome))
        finished = FinishedEvaluation(replace(EVALUATION, gates=gates, failures=()))
        assert (finished.outcome, finished.passed) == (outcome, ok)
    failed = FinishedEvaluation(replace(EVALUATION, gates=passed, failures=("bm25 failed",)))
    assert (failed.outcome, failed.passed, failed.failures) == ("error", False, ("bm25 failed",))
    lost = FinishedEvaluation(replace(EVALUATION, gates=passed, failures=()), lost_reports=["no space left"])
    assert (lost.outcome, lost.failures) == ("error", ("no space left",))


def test_the_text_form_names_the_outcome_and_each_mean() -> None:
    lines = repr(FinishedEvaluation(EVALUATION)).splitlines()
    assert lines[0].startswith("FinishedEvaluation('support-bot', ")
    assert lines[1].split()[:4] == ["golden", "bm25", "ndcg@10", "0.412"]
    assert len({line.index("0.") for line in lines[1:4]}) == 1, "the numbers are in one column"
    assert all(line.isprintable() for line in repr(FinishedEvaluation(make_evaluation((HOSTILE,)))).splitlines())


def test_every_report_can_be_had_as_text_or_bytes() -> None:
    finished = FinishedEvaluation(EVALUATION)
    assert "support-bot" in str(finished.report("markdown"))
    assert isinstance(finished.report("json"), str)
    assert isinstance(finished.report("parquet"), bytes)
    assert "0.41 " in str(finished.report("terminal", digits=2))
    with pytest.raises(UsageError, match="no 'markdwon'"):
        finished.report("markdwon")
    with pytest.raises(UsageError, match=r"the report 'terminal': digits: Input should be greater than or equal to 1"):
        finished.report("terminal", digits=0)


def test_a_question_is_a_card() -> None:
    finished = FinishedEvaluation(BRIDGES)
    card = finished.question("q1", system="v1")
    assert (card.query_id, card.system, card.question) == ("q1", "v1", "Question q1?")
    assert finished.questions(system="v1", limit=1)[0].system == "v1"
    with pytest.raises(UsageError, match="there is no filter 'sytem'; did you mean 'system'"):
        finished.questions(sytem="v1")


def test_a_question_that_is_not_there_or_not_alone_says_what_to_write() -> None:
    finished = FinishedEvaluation(BRIDGES)
    with pytest.raises(UsageError, match="there is no question 'nix'; the ids are q1, "):
        finished.question("nix")
    with pytest.raises(UsageError, match=r"there is no question 'q1' of the system 'v9'"):
        finished.question("q1", system="v9")
    with pytest.raises(UsageError, match=r"2 systems have the question 'q1'; add system='v1' or system='v2'"):
        finished.question("q1")


def test_what_was_saved_can_be_loaded(tmp_path: Path) -> None:
    finished = FinishedEvaluation(BRIDGES)
    assert finished.save(tmp_path / "out") == tmp_path / "out"
    loaded = load_results(str(tmp_path / "out"))
    assert loaded.aggregates.equals(finished.aggregates)
    assert loaded.values.select("query_id", "value").equals(finished.values.select("query_id", "value"))
    assert loaded.samples["answer"].to_list() == finished.samples["answer"].to_list()
    assert (loaded.outcome, loaded.gates) == (finished.outcome, finished.gates)
    assert load_results(tmp_path / "out" / "results.json").values.equals(loaded.values)
    with pytest.raises(DataError, match=r"nowhere is not a results folder: it has no results\.json"):
        load_results(tmp_path / "nowhere")


def test_a_wrong_key_of_a_report_says_what_to_write() -> None:
    finished = FinishedEvaluation(BRIDGES)
    with pytest.raises(UsageError, match="the report 'markdown' has no key 'digit'; did you mean 'digits'"):
        finished.report("markdown", digit=3)
    with pytest.raises(UsageError, match="the report 'markdown' has no key 'colour'; it has path, digits"):
        finished.report("markdown", colour=True)


class Tags(HTMLParser):
    """Collects the tags, their attributes and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.open += [] if tag == "br" else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def test_it_shows_the_outcome_and_the_means_with_intervals_and_gates() -> None:
    evaluation = make_evaluation()
    shown = Tags(FinishedEvaluation(evaluation)._repr_html_())
    assert shown.open == []
    assert shown.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td",
                          "ul", "li"}  # fmt: skip
    assert shown.attributes <= {"scope", "style"}
    for text in ("support-bot", "ndcg@10", "hybrid", "0.412", "[", *evaluation.systems, *evaluation.metrics):
        assert text in shown.text
    assert all(f"{one.scored}/{one.total}" in shown.text for one in evaluation.aggregates)


def test_texts_stay_texts() -> None:
    evaluation = replace(
        make_evaluation((HOSTILE,), (HOSTILE, "b"), {HOSTILE: (0.5, 0.25)}),
        name=HOSTILE,
        notes=(Note("n", HOSTILE, system=HOSTILE),),
        failures=(HOSTILE,),
    )
    html = FinishedEvaluation(evaluation, lost_reports=[HOSTILE])._repr_html_()
    shown = Tags(html)
    assert "script" not in shown.tags
    assert html.isprintable()
    assert shown.text.count("<script>=cmd() `x` \\x1b[31m @everyone") >= 6


def test_many_notes_are_counted_and_warnings_come_first() -> None:
    notes = [Note("n", f"note {index}") for index in range(14)] + [Note("w", "mind this", level="warning")]
    shown = Tags(FinishedEvaluation(replace(make_evaluation(), notes=tuple(notes), failures=()))._repr_html_())
    assert "mind this" in shown.text
    assert "note 8" in shown.text
    assert "note 9" not in shown.text
    assert "5 more notes: see `.notes`" in shown.text
