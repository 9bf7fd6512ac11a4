"""What people would say, in every report: the judge's number, the corrected one, the labels, and why one is missing.

Causes that are more frequent in a slice than elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rageval_spec.data.evaluation import Evaluation, SliceGap, SliceResult, Stability
from rageval_spec.data.outcomes import Advice, Cause, CauseCount, Diagnosis, Interval, Note, RankCounts
from rageval_spec.drawing.sections import (
    describe_legend,
    list_frequent_causes,
    list_sections,
    list_slice_counts,
    show_corrections,
)
from rageval_spec.runner import Options, run
from tests.browser import open_page
from tests.command_line import invoke
from tests.pipeline.labelling import write
from tests.sample_evaluation import make_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def count(cause: Cause, number: int, slice_name: str | None = None) -> CauseCount:
    return CauseCount("golden", "bm25", cause, number, 40, number / 40, Interval(0.01, 0.2), slice_name)


def diagnosed(*counts: CauseCount, advice: str | None = None) -> Evaluation:
    told = (Advice("golden", "bm25", advice),) if advice else ()
    return replace(make_evaluation(), diagnosis=Diagnosis("recall", "token_f1", None, 0.5, 0.7, counts, told))


def test_an_evaluation_without_extras_has_no_sections() -> None:
    assert list(list_sections(make_evaluation())) == []


def test_causes_are_counted_for_all_queries_with_what_to_try() -> None:
    evaluation = diagnosed(count("retrieval", 4), count("fine", 36), count("fine", 3, "hard"), advice="look there")
    section, _ = list_sections(evaluation)
    assert [row[:3] for row in section.rows] == [("retrieval", "4", "10% [1%, 20%]"), ("fine", "36", "90% [1%, 20%]")]
    assert section.remarks == ("Try first: look there.",)


def test_causes_that_stand_out_in_slices_are_listed() -> None:
    hard = CauseCount("golden", "bm25", "retrieval", 8, 10, 0.8, Interval(0.49, 0.94), "hard")
    _, section = list_sections(diagnosed(count("retrieval", 10), count("fine", 30), hard))
    assert section.title == "Causes that stand out in slices"
    assert section.rows == (("hard", "retrieval", "bm25", "8 of 10", "80% [49%, 94%]", "6.7%", "< 0.0001"),)
    others = [replace(hard, slice=f"hard {at}") for at in range(9)]
    _, section = list_sections(diagnosed(count("retrieval", 10), *others))
    assert section.remarks == ("1 more cause stands out; results.json has the counts of every slice.",)


def test_it_is_said_if_no_cause_stands_out() -> None:
    _, section = list_sections(diagnosed(count("retrieval", 10), count("retrieval", 3, "easy")))
    assert section.remarks == ("In no slice is a cause significantly more frequent than among the other questions.",)


def sliced(*gaps: SliceGap) -> Evaluation:
    one = SliceResult("golden", "difficulty=hard", "difficulty", "difficulty is hard", 12, (), ())
    return replace(make_evaluation(), slices=(one,), weakest=gaps)


def test_slices_that_do_not_differ_are_not_listed() -> None:
    (section,) = list_sections(sliced())
    assert (section.rows, section.remarks) == ((), ("No slice is significantly worse than the other queries.",))


def test_weak_slices_have_their_numbers() -> None:
    gap = SliceGap("golden", "bm25", "map", "difficulty=hard", 0.2, 0.5, -0.3, Interval(-0.4, -0.2), 0.001, 0.012, 12)
    (section,) = list_sections(sliced(gap))
    assert section.rows == (
        ("difficulty=hard", "map", "bm25", "12", "0.200", "0.500", "-0.300 [-0.400, -0.200]", "0.0120"),
    )


def test_the_rest_of_many_weak_slices_is_counted() -> None:
    gap = SliceGap("golden", "bm25", "map", "a", 0.2, 0.5, -0.3, None, 0.001, 0.00001, 12)
    (section,) = list_sections(sliced(*[replace(gap, slice=f"s{n}") for n in range(10)]))
    assert len(section.rows) == 8
    assert section.rows[0][-1] == "< 0.0001"
    assert section.remarks == ("2 more slices differ; results.json lists all of them.",)


def test_the_table_of_a_note_is_shown_with_its_metric_and_system() -> None:
    table = (("stage", "reached"), ("retrieval", "80"))
    note = Note("waterfall", "map: 80 samples", "golden", "bm25", table=table)
    (section,) = list_sections(replace(make_evaluation(), notes=(note,)))
    assert (section.title, section.header, section.rows) == ("Stages of map of bm25", table[0], table[1:])
    assert section.numbers == {1}


def test_the_table_of_a_note_is_called_by_its_first_column_and_its_texts_stand_on_the_left() -> None:
    note = Note("steps", "map: graded by 1 step", "golden", "bm25", table=(("step", "what"), ("1", "Look for it.")))
    (section,) = list_sections(replace(make_evaluation(), notes=(note,)))
    assert (section.title, section.numbers) == ("Steps of map of bm25", frozenset())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a spec with labels, with every report."""
    folder = tmp_path_factory.mktemp("corrected")
    reports = ["markdown", "html", "json", "junit", "csv", "openmetrics"]
    gates = [{"metric": "token_f1", "min": 0.1, "on": "lower"}]
    path = write(folder, metrics=[{"use": "token_f1", "labels": "people"}, "exact_match"], gates=gates, reports=reports)
    run(path, Options(output=folder / "out"))
    return folder


@pytest.fixture(scope="module")
def evaluation(folder: Path) -> Evaluation:
    return run(folder / "spec.yaml", Options(output=None, no_history=True)).evaluation


def test_a_row_for_each_mean_and_each_difference(evaluation: Evaluation) -> None:
    (section,) = show_corrections(evaluation, 3)
    rows = section.rows
    assert [row[0] for row in rows] == ["token_f1 of a", "token_f1 of b", "token_f1 of b vs a"]
    a = evaluation.aggregates[0]
    assert a.correction is not None and a.mean is not None and a.interval is not None
    assert rows[0][1] == f"{a.correction.judged:.3f}"
    assert rows[0][2] == f"{a.mean:.3f} [{a.interval.low:.3f}, {a.interval.high:.3f}]"
    assert rows[0][3].startswith(f"{a.correction.labelled:.3f} [") and rows[0][4] == "20"
    assert rows[2][1].startswith(("+", "-"))
    (sentence,) = section.remarks
    assert "(prediction-powered inference, PPI++)" in sentence


def test_the_legend_tells_the_two_kinds_of_intervals_and_tests_apart(evaluation: Evaluation) -> None:
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["[ ]"] == "95% interval of what people would say; for exact_match a 95% confidence interval"
    assert "paired permutation test; for token_f1 a t test of the corrected difference; Holm" in legend["▲ ▼"]


def test_the_terminal_and_markdown_show_the_table(folder: Path) -> None:
    done = invoke("run", folder / "spec.yaml", "-o", folder / "again", "--set", "reports=[terminal]")
    assert "What people would say" in done.stdout
    assert "token_f1 of b vs a" in done.stdout and "labels alone" in done.stdout
    text = (folder / "out" / "report.md").read_text()
    assert "#### What people would say\n" in text and "| `token_f1 of a` |" in text


def test_the_page_shows_the_table(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#corrected-title")
        section = opened.page.locator("section[aria-labelledby=corrected-title]")
        header = ["metric", "judge alone", "corrected", "labels alone", "labels", "worth"]
        assert section.locator("thead th").all_inner_texts() == header
        assert section.locator("tbody th").all_inner_texts() == ["token_f1 of a", "token_f1 of b", "token_f1 of b vs a"]
        assert opened.seen == []


def test_a_missing_number_is_a_dash_and_its_reason_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, labelled=5, reports=["terminal"], gates=[{"metric": "token_f1", "min": 0.1}])
    done = invoke("run", path, "-o", tmp_path / "out")
    assert done.exit_code == 1
    told = " ".join(done.stdout.split())
    assert "token_f1 – ✗ – ✗ 40/40" in told
    assert (
        "token_f1 of a, token_f1 of b: no corrected mean, because only 5 answers have labels, where at least 10 are "
        "needed." in told
    )
    assert "the labels 'people' cannot correct it: only 5 answers have labels" in told


def test_specs_without_labels_have_no_such_table(tmp_path: Path) -> None:
    plain = run(write(tmp_path, metrics=["token_f1"]), Options(output=None, no_history=True)).evaluation
    assert list(show_corrections(plain, 3)) == []


def test_a_question_shows_what_people_say_beside_the_judges_value(browser: Browser, folder: Path) -> None:
    told = " ".join(invoke("show", "q0", folder / "out").stdout.split())
    assert told.count("people say 1.000") == 1 and told.count("people say 0.000") == 1
    assert invoke("show", "q39", folder / "out").stdout.count("people say") == 0
    with open_page(browser, folder / "out" / "report.html", "#q=q1&system=a") as opened:
        opened.page.wait_for_selector(".values")
        text = opened.page.locator(".values").inner_text()
        assert "people say 1.0" in text and opened.seen == []


def test_slices_of_metrics_with_labels_are_said_not_to_be_tested(browser: Browser, tmp_path: Path) -> None:
    done = invoke("run", write(tmp_path, slices=["part"], reports=["terminal", "html"]), "-o", tmp_path / "out")
    said = "Not tested, because people's labels correct it: token_f1."
    assert said in done.stdout
    with open_page(browser, tmp_path / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#weakest-title")
        assert opened.page.get_by_text(said).is_visible() and opened.seen == []


def count_causes(cause: Cause, number: int, total: int, slice_name: str | None = None) -> CauseCount:
    return CauseCount("golden", "bm25", cause, number, total, number / total, None, slice_name)


def diagnosed_slices(*counts: CauseCount) -> Evaluation:
    return replace(make_evaluation(), diagnosis=Diagnosis("recall", "token_f1", None, 0.5, 0.7, counts))


def test_a_cause_that_is_frequent_in_one_slice_is_found_with_its_numbers() -> None:
    counts = (
        count_causes("retrieval", 20, 100),
        count_causes("retrieval", 15, 20, "hard"),
        count_causes("retrieval", 5, 50, "short"),
    )
    (found,) = list_frequent_causes(diagnosed_slices(*counts))
    assert (found.count.slice, found.others, found.others_total) == ("hard", 5, 80)
    assert found.p_adjusted == pytest.approx(2 * 9.6e-10, rel=0.5)


def test_small_slices_good_causes_and_slices_of_everything_are_not_tested() -> None:
    counts = [count_causes("fine", 50, 100), count_causes("fine", 20, 20, "easy")]
    counts += [
        count_causes("retrieval", 4, 100),
        count_causes("retrieval", 4, 4, "few"),
        count_causes("retrieval", 4, 100, "all"),
    ]
    assert list_frequent_causes(diagnosed_slices(*counts)) == []


def test_many_slices_need_a_clearer_difference() -> None:
    whole, one = count_causes("both", 10, 100), count_causes("both", 5, 20, "a")
    assert len(list_frequent_causes(diagnosed_slices(whole, one))) == 1
    others = [count_causes("both", 2, 20, f"s{at}") for at in range(20)]
    assert list_frequent_causes(diagnosed_slices(whole, one, *others)) == []


def test_the_counts_of_slices_are_grouped() -> None:
    counts = count_causes("both", 10, 100), count_causes("both", 5, 20, "a"), count_causes("fine", 15, 20, "a")
    assert list_slice_counts(diagnosed_slices(*counts)) == {("golden", "bm25"): {"a": [counts[1], counts[2]]}}
    assert list_slice_counts(make_evaluation()) == {}


def test_ranks_of_first_relevant_documents_are_counted() -> None:
    ranks = {"1": 20, "2-3": 5, "4-10": 3, "11-": 0, "none": 2}
    counts = (RankCounts("golden", "bm25", "rr", 30, ranks), RankCounts("golden", "dense", "rr", 30, ranks))
    (section,) = list_sections(replace(make_evaluation(), target_ranks=counts))
    assert section.title == "Rank of the first relevant document"
    assert section.header == ("metric", "queries", "rank 1", "2–3", "4–10", "not found")
    assert section.rows == (("rr of bm25", "30", "20", "5", "3", "2"), ("rr of dense", "30", "20", "5", "3", "2"))
    far = (replace(counts[0], ranks={**ranks, "11-": 4}),)
    (section,) = list_sections(replace(make_evaluation(), target_ranks=far))
    assert section.header[-2:] == ("11+", "not found")


def test_stability_says_which_gates_a_repeat_alone_would_turn() -> None:
    whole = make_evaluation()
    gates = (replace(whole.gates[0], flips=1), *whole.gates[1:])
    one = Stability("golden", "bm25", "rr", 30, 12, 0.04, 0.09)
    (section,) = list_sections(replace(whole, stability=(one,), gates=gates))
    assert section.rows == (("rr of bm25", "30", "12", "0.200", "0.300"),)
    assert section.remarks[1:] == (
        f"Gate on {gates[0].metric} of {gates[0].system}, {gates[0].outcome}: 1 repeat alone would have another "
        "outcome.",
    )
