"""A system is asked all queries after a finished evaluation, and only the missing ones after an unfinished one."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec import load_results
from rageval_spec.data.outcomes import TakenOver
from rageval_spec.errors import BROKEN, GATE_FAILED, PASSED
from rageval_spec.plugin import Report, ReportNode
from rageval_spec.runner import RunOutcome, plan
from rageval_spec.wording import describe_taken_over
from tests.answering import Brevity, BriefJudge
from tests.asked_app import AskedApp
from tests.command_line import invoke
from tests.tiny import Install, install

__all__ = ["install"]

APP = """
import pathlib
FOLDER = pathlib.Path(__file__).parent
def answer(question):
    with open(FOLDER / 'asked.log', 'a') as log:
        log.write(question + '\\n')
    return (FOLDER / 'says.log').read_text()
"""


class Unwritable(Report[ReportNode]):
    """A report that always raises."""

    node_type = ReportNode
    filename = "lost.txt"

    def render(self, evaluation: object) -> bytes:
        """Raise an exception."""
        raise OSError("no paper")


QUESTIONS = [f"Is it {row}?" for row in range(4)]


@pytest.fixture
def app(tmp_path: Path) -> AskedApp:
    return AskedApp(tmp_path, "finished_app", APP, 4)


def mean(outcome: RunOutcome) -> float | None:
    found = outcome.evaluation.aggregate("rows", "app", "exact_match")
    return found.mean if found else None


def test_a_changed_app_is_asked_again_after_a_finished_evaluation(app: AskedApp) -> None:
    first = app.run()
    assert (first.exit_code, first.is_finished, mean(first), app.asked) == (PASSED, True, 1.0, QUESTIONS)
    app.say("no")
    assert (mean(app.run()), app.asked) == (0.0, QUESTIONS)


def test_an_evaluation_with_a_failed_gate_is_finished(app: AskedApp) -> None:
    app.say("no")
    first = app.run(gates=[{"metric": "exact_match", "min": 0.5}])
    assert (first.exit_code, first.is_finished, app.asked) == (GATE_FAILED, True, QUESTIONS)
    app.say("yes")
    assert (app.run(gates=[{"metric": "exact_match", "min": 0.5}]).exit_code, app.asked) == (PASSED, QUESTIONS)


def test_after_a_limit_the_rest_is_asked(app: AskedApp) -> None:
    first = app.run(limits={"max_calls": 3})
    assert (first.exit_code, first.is_finished, app.asked) == (BROKEN, False, QUESTIONS[:3])
    second = app.run()
    assert (second.is_finished, mean(second), app.asked) == (True, 1.0, QUESTIONS[3:])


def test_an_evaluation_with_a_failed_metric_is_finished(app: AskedApp, install: Install) -> None:
    install("metrics", "brevity", Brevity)
    install("judges", "brief", BriefJudge)
    sections: dict[str, Any] = {
        "judges": {"judge": {"use": "brief"}}, "metrics": ["exact_match", {"use": "brevity", "judge": "judge"}],
    }  # fmt: skip
    app.say("stop")
    first = app.run(**sections)
    assert (first.exit_code, first.is_finished, app.asked) == (BROKEN, True, QUESTIONS)
    app.say("no")
    assert (mean(app.run(**sections)), app.asked) == (0.0, QUESTIONS)


def test_an_evaluation_whose_report_failed_is_finished(app: AskedApp, install: Install) -> None:
    install("reports", "unwritable", Unwritable)
    first = app.run(reports=["json", "unwritable"])
    assert (first.exit_code, first.is_finished, app.asked) == (BROKEN, True, QUESTIONS)
    app.run()
    assert app.asked == QUESTIONS


def test_an_evaluation_whose_results_could_not_be_written_is_continued(app: AskedApp) -> None:
    (app.folder / "out").write_text("a file where the folder should be")
    first = app.run()
    assert (first.exit_code, first.is_finished, app.asked) == (BROKEN, False, QUESTIONS)
    (app.folder / "out").unlink()
    assert (app.run().is_finished, app.asked) == (True, [])


def test_queries_of_a_finished_limited_evaluation_are_asked_again(app: AskedApp) -> None:
    app.run({"limit": 2})
    assert app.asked == QUESTIONS[:2]
    app.run()
    assert app.asked == QUESTIONS


def test_retry_failed_repairs_the_last_evaluation(app: AskedApp) -> None:
    app.run()
    assert app.asked == QUESTIONS
    app.say("no")
    assert (mean(app.run({"retry_failed": True})), app.asked) == (1.0, [])


def test_a_plan_counts_what_would_be_asked(app: AskedApp) -> None:
    app.run(limits={"max_calls": 3})
    planned = plan(app.write_spec())
    assert planned.expectation.questions == {"app": 1}
    assert "  app  1 question (reuses 3 answers of an unfinished evaluation, asked 2" in planned.render()
    reused = json.loads(planned.to_json())["to_ask"]["reused"]
    assert reused["app"].startswith("3 answers of an unfinished evaluation")
    app.run()
    finished = plan(app.write_spec())
    assert (finished.expectation.questions, finished.expectation.reused) == ({"app": 4}, {})


def test_the_command_says_what_it_reuses(app: AskedApp) -> None:
    out = app.folder / "out"
    stopped = invoke("run", app.write_spec(limits={"max_calls": 3}), "-o", out)
    assert "taking over" not in stopped.stderr
    result = invoke("run", app.write_spec(), "-o", out)
    assert "app on rows: taking over 3 answers of an unfinished evaluation, asked 2" in result.stderr
    assert " UTC; asking 1 question\n" in result.stderr
    assert "taking over" not in invoke("run", app.write_spec(), "-o", out).stderr


KEPT: dict[str, Any] = {
    "systems": {"app": {"use": "python", "function": "finished_app:answer", "reuse": "always", "version": "2026-03-01"}}
}


def test_kept_answers_are_not_asked_again_and_every_report_says_since_when(app: AskedApp) -> None:
    reports = ["terminal", "json", "html", "markdown", "junit", "codequality", "openmetrics"]
    first = app.run(reports=reports, **KEPT)
    assert (mean(first), app.asked, first.evaluation.provenance.taken_over) == (1.0, QUESTIONS, ())
    app.say("no")
    out = app.folder / "out"
    result = invoke("run", app.write_spec(reports=reports, **KEPT), "-o", out)
    assert app.asked == []
    [taken] = json.loads((out / "results.json").read_text())["taken_over"]
    assert (taken["dataset"], taken["system"], taken["answers"], taken["questions"]) == ("rows", "app", 4, 4)
    told = describe_taken_over(TakenOver(**taken))
    since = "earlier evaluations (reuse: always, version: 2026-03-01), asked 2"
    assert told.startswith(f"4 of 4 answers are taken over from {since}")
    assert f"app on rows: taking over 4 answers of {since}" in result.stderr
    assert told in " ".join(result.stdout.split())
    for name in ("report.md", "junit.xml", "codequality.json"):
        assert told in (out / name).read_text().replace("\\", ""), name
    gauge = 'rageval_answers_taken_over{spec="spec",dataset="rows",system="app"} 4.0'
    assert gauge in (out / "metrics.txt").read_text()
    packed = re.findall(r"H4sI[A-Za-z0-9+/]+=*", (out / "report.html").read_text())
    assert any(told in gzip.decompress(base64.b64decode(part)).decode() for part in packed)
    place = ("--history", str(app.folder / ".rageval" / "history.db"))
    assert f"4 of 4 from {taken['first'][:10]}" in invoke("history", "list", *place).stdout
    assert told in " ".join(invoke("history", "show", "previous", *place).stdout.split())
    invoke("comment", out, "--no-post", "--summary", app.folder / "summary.md")
    assert told in (app.folder / "summary.md").read_text().replace("\\", "")
    assert told in repr(load_results(out))


def test_tables_have_the_time_of_each_answer_that_was_not_asked_now(app: AskedApp) -> None:
    reports = ["csv", "parquet", {"use": "samples", "path": "questions.csv"}]
    app.run({"limit": 2}, **KEPT)
    invoke("run", app.write_spec(reports=reports, **KEPT), "-o", app.folder / "out")
    out = app.folder / "out"
    [taken] = json.loads((out / "results.json").read_text())["taken_over"]
    assert taken["first"] is not None
    files = ["values.parquet", "values.csv", "samples.parquet", "questions.csv"]
    tables = [(pl.read_parquet if name.endswith("parquet") else pl.read_csv)(out / name) for name in files]
    for table in (*tables, load_results(out).values, load_results(out).samples):
        asked = dict(table.select("query_id", "asked").iter_rows())
        assert (asked["q2"], asked["q3"]) == (None, None)
        assert sorted([asked["q0"], asked["q1"]]) == [taken["first"], taken["last"]]
    app.run(reports=reports)
    assert "asked" not in app.run(reports=reports).evaluation.values.columns


def test_times_need_no_samples(app: AskedApp) -> None:
    app.run(**KEPT)
    again = app.run(samples="none", **KEPT).evaluation
    assert again.values["asked"].null_count() == 0 and again.samples.is_empty()


def test_a_new_version_of_kept_answers_is_asked_again(app: AskedApp) -> None:
    app.run(**KEPT)
    app.say("no")
    newer = {"systems": {"app": {**KEPT["systems"]["app"], "version": "2026-03-02"}}}
    assert app.asked == QUESTIONS
    assert (mean(app.run(**newer)), app.asked) == (0.0, QUESTIONS)
    assert (mean(app.run(**KEPT)), app.asked) == (1.0, [])


def test_only_questions_without_a_kept_answer_are_asked(app: AskedApp) -> None:
    app.run({"limit": 2}, **KEPT)
    assert app.asked == QUESTIONS[:2]
    planned = plan(app.write_spec(**KEPT))
    assert planned.expectation.questions == {"app": 2}
    assert "(reuses 2 answers of earlier evaluations (reuse: always, version: 2026-03-01), asked 2" in planned.render()
    second = app.run(**KEPT)
    assert app.asked == QUESTIONS[2:]
    [taken] = second.evaluation.provenance.taken_over
    assert (taken.answers, taken.questions, taken.sources) == (2, 4, ("always",))


def test_answers_are_kept_although_the_last_evaluation_did_not_ask_to_keep_them(app: AskedApp) -> None:
    plain = {"systems": {"app": {key: of for key, of in KEPT["systems"]["app"].items() if key != "reuse"}}}
    app.run(**plain)
    assert app.asked == QUESTIONS
    app.run(**KEPT)
    assert app.asked == []
    app.run(**plain)
    assert app.asked == QUESTIONS


def test_keeping_answers_needs_a_version(app: AskedApp) -> None:
    spec = app.write_spec(systems={"app": {"use": "python", "function": "finished_app:answer", "reuse": "always"}})
    result = invoke("validate", spec)
    assert result.exit_code == 2 and "write the system's version" in result.stderr


def test_recorded_answers_are_told_as_such(app: AskedApp) -> None:
    answers = [{"query_id": f"q{row}", "answer": "yes"} for row in range(4)]
    (app.folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    spec = app.write_spec(systems={"v1": {"use": "file", "path": "answers.jsonl"}}, reports=["terminal"])
    assert "v1: 4 of 4 answers are recorded in answers.jsonl." in invoke("run", spec, "-o", app.folder / "out").stdout


def test_a_recording_has_the_times_of_its_traces() -> None:
    asked = [("2026-03-01T11:42:00+01:00", None), (None, None), ("2026-03-02T08:00:00Z", None)]
    taken = TakenOver.of_recording("bot", "langfuse", 4, asked)
    told = "recorded in langfuse, asked from 2026-03-01 10:42 to 2026-03-02 08:00 UTC (1 at an unknown time)"
    assert describe_taken_over(taken) == f"3 of 4 answers are {told}"
