"""What the terminal shows beside the tables; `tests/reports/test_terminal.py` has the tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.bands import make_scale
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, SliceResult
from rageval_spec.data.outcomes import GateOutcome, Interval, Note
from rageval_spec.plugin import Context
from rageval_spec.reports.terminal import TerminalNode, TerminalReport
from tests.answered_evaluation import answered, sample, value
from tests.sample_evaluation import make_evaluation


def show(evaluation: Evaluation, width: int = 200) -> str:
    node = TerminalNode(use="terminal", width=width)
    return TerminalReport(node, Context("terminal")).render(evaluation).decode()


def compare(metric: str, difference: float, baseline: str = "main") -> Comparison:
    interval = Interval(difference - 0.01, difference + 0.01)
    return Comparison("golden", metric, "bm25", baseline, difference, interval, 0.001, 0.002, 40, 30, 10)


def test_the_verdict_is_the_first_line() -> None:
    assert show(make_evaluation()).startswith("✗ Not ready: 1 of 3 gates failed, 1 warned. ndcg@10 of bm25 is 0.412")


def test_a_baseline_has_a_column_with_the_differences() -> None:
    text = show(replace(make_evaluation(), baselines=(compare("map", -0.05),)))
    assert "bm25 vs main" in text
    assert "-0.050 [-0.060, -0.040] ▼" in text


def test_a_baseline_that_is_in_the_table_has_no_column_if_there_is_no_room() -> None:
    evaluation = replace(make_evaluation(), baselines=(compare("map", -0.05, "hybrid"),))
    assert "bm25 vs hybrid" in show(evaluation, 200)
    assert "bm25 vs hybrid" not in show(evaluation, 80)


def test_words_of_a_scale_stand_beside_the_means() -> None:
    bands = {"map": make_scale({"good": 0.4, "fair": 0.35})}
    text = show(replace(make_evaluation(), bands=bands))
    assert "[0.300, 0.367] below" in text
    assert "[0.378, 0.462] good" in text
    assert "map: good ≥ 0.4, fair ≥ 0.35, else below" in text


@pytest.mark.parametrize(("lower", "colour"), [((), "31"), (("map",), "32")])
def test_marks_are_green_for_better_and_red_for_worse(
    monkeypatch: pytest.MonkeyPatch, lower: tuple[str, ...], colour: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    evaluation = replace(make_evaluation(), baselines=(compare("map", -0.05),), lower_is_better=lower)
    assert f"\x1b[{colour}m▼" in show(evaluation)


def sliced(*names: str) -> Evaluation:
    one = make_evaluation(systems=("bm25",), metrics={"map": (0.4,), "rr": (0.5,)})
    results = [
        SliceResult(
            "golden", name, None, name, 9 - at,
            (Aggregate("golden", "bm25", "map", 0.25, Interval(0.1, 0.4), 8 - at, 9 - at, slice=name),), (),
        )
        for at, name in enumerate(names)
    ]  # fmt: skip
    gate = GateOutcome(0, "golden", "bm25", "map", "fail", "≥ 0.5", 0.25, "too low", slice=names[0])
    return replace(one, slices=tuple(results), gates=(gate,))


def test_each_slice_has_its_means_with_intervals_counts_and_gates() -> None:
    lines = show(sliced("hard", "easy")).splitlines()
    start = lines.index("Slices of bm25")
    assert lines[start + 1].split() == ["slice", "map", "queries"]
    assert lines[start + 3].split() == ["hard", "0.250", "[0.100,", "0.400]", "✗", "8/9", "9"]
    assert lines[start + 4].split() == ["easy", "0.250", "[0.100,", "0.400]", "7/8", "8"]


def test_of_many_slices_the_largest_are_shown() -> None:
    text = show(sliced(*(f"part{at:02}" for at in range(9)), *(f"small{at}" for at in range(5))))
    assert "part08" in text
    assert "small4" not in text
    assert "2 other slices with fewer queries: see results.json" in text


@pytest.mark.parametrize("width", [52, 60, 80])
def test_a_funnel_fits_the_terminal_with_the_names_of_its_stages(width: int) -> None:
    header = ("stage", "reached", "accepted", "sent to a person", "without anything to judge")
    table = (header, ("answerability", "39", "0", "9", "1"), ("the last stage", "15", "15", "0", "0"))
    note = Note("stages", "map: 39 samples", "golden", "bm25", table=table)
    text = show(replace(make_evaluation(systems=("bm25",)), notes=(note,)), width)
    assert "answerability" in text
    assert "the last stage" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_table_in_parts_has_only_the_rows_that_a_part_has() -> None:
    """A part with retrievers need not have empty rows for the metrics of answers, and the other way round."""
    of_answers = ("faithfulness", "completeness")
    whole = make_evaluation(
        ("golden",),
        ("bm25", "assistant"),
        {"map": (0.4,), "rr": (0.3,), **dict.fromkeys(of_answers, (0.7,))},
    )
    cells = [one for one in whole.aggregates if (one.metric in of_answers) == (one.system == "assistant")]
    evaluation = replace(whole, aggregates=tuple(cells), comparisons=(), gates=(), notes=())
    first, second = show(evaluation, 40).split("metric ")[1:]
    assert "map" in first and "rr" in first and "faithfulness" not in first and "completeness" not in first
    assert "assistant" in second and "faithfulness" in second and "map" not in second.split("[ ]")[0]
    assert "faithfulness" in show(evaluation, 200)


def make_down(answer: str | None) -> Evaluation:
    """40 questions of one system whose server refuses connections; `answer` is that of the last."""
    failure = "http://127.0.0.1:9/ask refuses connections (is it running?)"
    texts = [None] * 39 + [answer]
    samples = [
        sample(f"q{at}", answer=text, error=None if text else failure, status="answered" if text else "failed")
        for at, text in enumerate(texts)
    ]
    rows = [value(f"q{at}", "token_f1", 0.25 if text else None) for at, text in enumerate(texts)]
    failures = () if answer else (f"v1 on golden: none of 40 queries got an answer; the first: {failure}",)
    return replace(answered(rows, samples), failures=failures)


def test_a_server_that_is_down_is_one_message() -> None:
    lines = show(make_down(None)).splitlines()
    assert lines[0].startswith("✗ Incomplete: 1 part of the evaluation failed. v1 on golden: none of 40 queries got")
    assert [line for line in lines if line.startswith(("✗", "note", "warning"))] == [lines[0]]


def test_an_error_that_many_questions_share_is_listed_once_among_those_to_look_at() -> None:
    told = show(make_down("It was built in 1911."))
    assert told.count("refuses connections") == 1
    assert "q0 · v1 · failed" in told and "q39 · v1 · token_f1 0.250" in told


def test_a_metric_can_be_shown_as_a_percentage() -> None:
    shown = replace(make_evaluation(), baselines=(compare("map", -0.05),), show_as={"map": "percent"})
    text = show(shown)
    assert "33.3% [30%, 36.7%]" in text
    assert "-5 pp [-6, -4 pp] ▼" in text
    assert "pp" in [line.split()[0] for line in text.splitlines() if "percentage points" in line]
    assert "0.412" in text, "other metrics stay numbers"
    assert "percentage points" not in show(make_evaluation())


def test_a_scale_and_the_cards_of_a_percentage_say_percent() -> None:
    bands = {"map": make_scale({"good": 0.4, "fair": 0.355})}
    assert "map: good ≥ 40%, fair ≥ 35.5%, else below" in show(
        replace(make_evaluation(), bands=bands, show_as={"map": "percent"})
    )
    rows = [value("q1", "token_f1", 0.125)]
    one = answered(rows, [sample("q1", answer="A.")], show_as={"token_f1": "percent"})
    assert "token_f1 12.5%" in show(one)
