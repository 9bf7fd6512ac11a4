"""Intervals of evaluations that stopped early."""

from __future__ import annotations

from tests.pipeline.execution.test_stopping_decision import CLEAR, App, app, notes

__all__ = ["app"]


def test_every_bounded_mean_gets_a_sequence_and_the_others_are_named(app: App) -> None:
    outcome = app.run(CLEAR, metrics=["exact_match", "token_f1", "latency"])
    methods = {one.metric: one.interval and one.interval.method for one in outcome.evaluation.aggregates}
    assert (methods["exact_match"], methods["token_f1"]) == ("betting", "betting")
    assert methods["latency"] == "bootstrap-bca-t"
    assert "the intervals of latency do not take into account that the evaluation stopped early" in notes(outcome)


def test_the_interval_is_at_the_confidence_of_the_spec(app: App) -> None:
    settings = {"resamples": 200, "permutations": 200}
    wide = app.run(CLEAR, statistics=settings).evaluation.aggregates[0]
    narrow = app.run(CLEAR, statistics={**settings, "confidence": 0.8}).evaluation.aggregates[0]
    assert wide.interval is not None and narrow.interval is not None
    assert (wide.interval.confidence, narrow.interval.confidence) == (0.95, 0.8)
    assert wide.interval.low < narrow.interval.low < narrow.interval.high < wide.interval.high


def test_slices_get_sequences_of_their_own_questions(app: App) -> None:
    outcome = app.run(CLEAR, slices=[{"name": "short", "where": {"column": "question", "contains": "it 1"}}])
    (slice,) = outcome.evaluation.slices
    ((part,), (whole,)) = slice.aggregates, outcome.evaluation.aggregates
    assert part.interval is not None and whole.interval is not None
    assert part.interval.method == "betting"
    assert part.scored < whole.scored
    assert part.interval.high - part.interval.low > whole.interval.high - whole.interval.low


def test_reports_name_the_sequence_and_what_was_not_asked(app: App) -> None:
    outcome = app.run(CLEAR, reports=["terminal", "markdown"])
    asked = len(app.asked)
    told = f"asked {asked} of 200 questions, in random order: every gate was decided"
    shown = b"".join(outcome.shown).decode()
    markdown = (app.folder / "out" / "report.md").read_text()
    for text in (shown, markdown):
        assert " ".join(told.split()) in " ".join(text.split())
    legend = f"95% confidence sequence of the mean over all 200 questions, {asked} of them asked"
    assert legend in " ".join(shown.split())
    assert legend in markdown
