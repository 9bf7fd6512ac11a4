"""Means of windows corrected by labels, where there are enough of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rageval_spec.data.labels import digest_answer
from rageval_spec.monitoring.assembly import make_page, make_watch, open_ledger, open_monitor
from rageval_spec.monitoring.looks.windows import Span, WindowNumbers, WindowReader
from rageval_spec.monitoring.service import MonitorLoop
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import load
from rageval_spec.statistics.intervals import Resampling
from tests.monitoring.seen_traces import BEGAN, fill

SPEC = """
version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
labels: {people: {use: csv, path: labels.csv}}
metrics: [{use: faithfulness, judge: overlap, labels: people}]
monitor: {alerts: [{metric: faithfulness, warning: 0.6, window: hour}]}
"""


@contextmanager
def open_window(folder: Path, labels: str, spec: str = SPEC) -> Iterator[tuple[MonitorLoop, WindowReader]]:
    (folder / "labels.csv").write_text("query_id,metric,value,answer_digest\n" + labels)
    (folder / "spec.yaml").write_text(spec)
    with open_monitor(load(folder / "spec.yaml"), clock=lambda: BEGAN + 10_000) as loop:
        watch = loop.watch
        yield loop, watch.reader


def read(folder: Path, labels: str) -> WindowNumbers:
    """A window of 100 traces that the judge likes too much: all of them but every fifth."""
    with open_window(folder, labels) as (loop, reader):
        series = loop.judge.series["faithfulness"]
        fill(loop.ledger, series.id, [1.0, 1.0, 1.0, 1.0, 0.0] * 20, step=10)
        span = Span(BEGAN, BEGAN + 3600)
        return reader.describe(series, "hour", span, reader.read_values(series, span))


def test_enough_labels_correct_the_mean(tmp_path: Path) -> None:
    labels = "".join(f"t{at},faithfulness,{0 if at % 2 or at % 5 == 4 else 1},\n" for at in range(40))
    numbers = read(tmp_path, labels)
    assert numbers.correction is not None and numbers.correction.reason is None
    assert numbers.correction.judged == pytest.approx(0.8)
    assert numbers.correction.labels == 40
    assert numbers.value == pytest.approx(0.4, abs=0.03)
    assert numbers.interval is not None and numbers.interval.low < 0.4 < numbers.interval.high < 0.6


def test_few_labels_leave_the_judges_mean_and_say_why(tmp_path: Path) -> None:
    numbers = read(tmp_path, "t1,faithfulness,1,\nt2,faithfulness,0,\n")
    assert numbers.value == pytest.approx(0.8)
    assert numbers.correction is not None and numbers.correction.reason is not None
    assert numbers.correction.reason.startswith("only 2 answers have labels")


def test_a_label_of_another_answer_does_not_count(tmp_path: Path) -> None:
    mine, other = digest_answer("Ada wrote it."), digest_answer("Somebody wrote it.")
    labels = "".join(f"t{at},faithfulness,{at % 2},{mine if at < 30 else other}\n" for at in range(60))
    numbers = read(tmp_path, labels)
    assert numbers.correction is not None
    assert numbers.correction.labels == 30


def test_a_level_is_decided_by_the_corrected_mean(tmp_path: Path) -> None:
    labels = "".join(f"t{at},faithfulness,{0 if at % 3 else 1},\n" for at in range(90))
    with open_window(tmp_path, labels) as (loop, _):
        start = BEGAN // 3600 * 3600
        fill(loop.ledger, loop.judge.series["faithfulness"].id, [1.0, 1.0, 1.0, 1.0, 0.0] * 20, began=start, step=10)
        watch = loop.watch
        (look,) = watch.look(start + 3900)
        assert look.verdict == "holds"
        assert "below 0.600" in look.summary


def test_a_difference_that_labels_do_not_correct_says_so(tmp_path: Path) -> None:
    labels = "".join(f"t{at},faithfulness,{0 if at % 3 else 1},\n" for at in range(90))
    with open_window(tmp_path, labels) as (loop, _):
        start, series = BEGAN // 3600 * 3600, loop.judge.series["faithfulness"]
        fill(loop.ledger, series.id, [1.0] * 100, began=start - 3600, step=10, prefix="before")
        fill(loop.ledger, series.id, [1.0, 1.0, 1.0, 1.0, 0.0] * 20, began=start, step=10)
        (look,) = loop.watch.look(start + 3900)
        assert re.search(r"; -0\.200 \[[^]]*\] of the judge's values against the 7 days before$", look.summary)
    spec = load(tmp_path / "spec.yaml")
    with open_ledger(spec) as ledger:
        parts = build_parts(spec)
        watch = make_watch(spec, ledger, parts, series={series.name: series})
        page = make_page(spec, watch, parts, tmp_path / "monitor.html").draw(start + 3900).decode()
    assert "-0.200" in page and "of the judge&#39;s values; the 7 days before" in page


def test_a_change_that_labels_do_not_correct_says_so(tmp_path: Path) -> None:
    spec = SPEC.replace("warning: 0.6, window: hour", "drift: {high: 5%}")
    labels = "".join(f"t{at},faithfulness,{0 if at % 3 else 1},\n" for at in range(90))
    with open_window(tmp_path, labels, spec) as (loop, _):
        series = loop.judge.series["faithfulness"]
        now = fill(loop.ledger, series.id, [1.0] * 200, prefix="before") + 30
        loop.watch.look(now)
        now = fill(loop.ledger, series.id, [1.0, 0.0] * 50, began=now) + 30
        (look,) = loop.watch.look(now)
    told = r"fell by 0\.\d+ from 1\.000 of the judge's values, \S+ \[[^]]*\] of \d+ judged traces since then"
    assert re.search(f"{told}, corrected by labels", look.summary)


def test_labels_that_cannot_be_read_do_not_stop_the_monitor(tmp_path: Path) -> None:
    with open_window(tmp_path, "t1,faithfulness,1,\n") as (loop, reader):
        (tmp_path / "labels.csv").unlink()
        series = loop.judge.series["faithfulness"]
        fill(loop.ledger, series.id, [1.0, 0.0] * 20, step=10)
        numbers = WindowReader(loop.ledger, 60, Resampling(), reader.corrector).describe(
            series, "hour", Span(BEGAN, BEGAN + 3600), reader.read_values(series, Span(BEGAN, BEGAN + 3600))
        )
        assert numbers.value == pytest.approx(0.5)
        assert numbers.correction is not None
        assert "labels.csv" in str(numbers.correction.reason)
