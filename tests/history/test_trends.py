"""Records become series that break where numbers stop being comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

import pytest

from rageval_spec.data.results import Break, Series, Trend
from rageval_spec.drawing.trend_charts import draw_trend, write_trend
from rageval_spec.errors import UsageError
from rageval_spec.history.database import RecordFilter, StoredRecord
from rageval_spec.history.trends import COST, DURATION, TrendFilter, collect_trend
from rageval_spec.plugin.budget import Cost
from tests.history.records import make_id, make_record, opened

_MEAN = 6


def shift(record: StoredRecord, by: float) -> StoredRecord:
    """The record with all its means moved."""
    rows = [(*row[:_MEAN], row[_MEAN] + by, *row[_MEAN + 1 :]) for row in record.aggregates]
    return replace(record, aggregates=rows)


def mean(record: StoredRecord, **changed: Any) -> StoredRecord:
    """The record with other digests: `question="x"`, or `metrics={...}`."""
    meaning = json.loads(record.row["meaning"])
    meaning["data"]["golden"].update({key: digest for key, digest in changed.items() if key != "metrics"})
    meaning["metrics"] = changed.get("metrics", {"map": {"definition": "1", "judge": "a"}})
    return replace(record, row={**record.row, "meaning": json.dumps(meaning)})


def collect(folder: Path, records: Sequence[StoredRecord], metric: str | None = "map", **wanted: Any) -> Trend:
    with opened(folder, *records) as history:
        return collect_trend(history, RecordFilter(), TrendFilter(metric, **wanted))


def first(trend: Trend) -> Series:
    return next(one for one in trend.series if one.system == "bm25")


def test_a_series_has_the_points_of_its_cell_oldest_first(tmp_path: Path) -> None:
    trend = collect(tmp_path, [shift(make_record(2), 0.1), make_record(1)])
    assert [(one.metric, one.system) for one in trend.series] == [
        *[("map", system) for system in ("bm25", "dense", "hybrid")], (COST, ""), (DURATION, "")
    ]  # fmt: skip
    points = first(trend).points
    assert [point.record_id for point in points] == [make_id(1), make_id(2)]
    assert [point.mean for point in points] == pytest.approx([0.33333, 0.43333])
    assert points[0].low is not None and points[0].commit == "c" * 40
    assert [point.mean for point in trend.series[-2].points] == [0.25, 0.25]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: mean(record), None),
        (lambda record: mean(record, question="x"), "the questions changed"),
        (lambda record: mean(record, reference="x", judgements="new"), "the references changed"),
        (
            lambda record: mean(record, metrics={"map": {"definition": "2", "judge": "a"}}),
            "the definition of the metric changed",
        ),
        (lambda record: mean(record, metrics={"map": {"definition": "1", "judge": "b"}}), "the judge changed"),
        (lambda record: mean(record, metrics={}), None),
    ],
)  # fmt: skip
def test_the_line_breaks_where_numbers_stop_being_comparable(
    tmp_path: Path, change: Callable[[StoredRecord], StoredRecord], reason: str | None
) -> None:
    trend = collect(tmp_path, [mean(make_record(1)), change(make_record(2)), change(make_record(3))])
    assert first(trend).breaks == (() if reason is None else (Break(1, reason),))


def test_records_without_digests_hide_no_change(tmp_path: Path) -> None:
    records = [mean(make_record(1)), mean(make_record(2), metrics={}), mean(make_record(3), metrics={})]
    last = mean(make_record(4), metrics={"map": {"definition": "2", "judge": "a"}})
    assert first(collect(tmp_path, [*records, last])).breaks == (Break(3, "the definition of the metric changed"),)


def test_a_change_of_level_is_marked_but_not_across_a_break(tmp_path: Path) -> None:
    lower = [shift(make_record(number), 0.001 * (number % 3)) for number in range(1, 11)]
    higher = [shift(make_record(number), 0.2 + 0.001 * (number % 3)) for number in range(11, 21)]
    [change] = first(collect(tmp_path, [*lower, *higher])).changes
    assert change.index == 10 and change.after - change.before == pytest.approx(0.2, abs=0.01)
    other = tmp_path / "other"
    edited = [mean(record, question="x") for record in higher]
    assert first(collect(other, [*map(mean, lower), *edited])).changes == ()


def test_the_bounds_are_those_of_the_newest_gates(tmp_path: Path) -> None:
    records = []
    for number, bound in ((1, 0.2), (2, 0.3)):
        record = make_record(number)
        gate = {"metric": "map", "dataset": "golden", "system": "bm25", "slice": None, "outcome": "pass", "min": bound}
        records.append(replace(record, row={**record.row, "gates": json.dumps([gate])}))
    trend = collect(tmp_path, records)
    assert first(trend).bounds == {"min": 0.3}
    assert trend.series[1].bounds == {}


def test_what_is_wanted_restricts_the_series(tmp_path: Path) -> None:
    assert {one.system for one in collect(tmp_path, [make_record(1)], system="dense").series} == {"dense", ""}
    assert len(collect(tmp_path, [], metric=None).series) == 15 + 2


def test_absent_metrics_and_records_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such records"):
        collect(tmp_path, [])
    with pytest.raises(UsageError, match="no record has the metric 'mapp'; did you mean 'map'"):
        collect(tmp_path, [make_record(1)], metric="mapp")
    with pytest.raises(UsageError, match="no record has the system 'none'; the systems are "):
        collect(tmp_path, [], system="none")
    with pytest.raises(UsageError, match="no record has the dataset 'none'; the datasets are "):
        collect(tmp_path, [], metric=None, dataset="none")
    with pytest.raises(UsageError, match="no record has the slice 'level=x'"):
        collect(tmp_path, [], slice="level=x")


def test_a_cost_that_is_unknown_is_no_point_and_is_said(tmp_path: Path) -> None:
    costs = [Cost(None, "unknown"), Cost(None, "unknown"), Cost(0.4, "partly known"), Cost(0.5, "known")]
    trend = collect(tmp_path, [make_record(number, cost=cost) for number, cost in enumerate(costs)])
    (cost,) = (one for one in trend.series if one.metric == COST)
    assert [point.mean for point in cost.points] == [0.4, 0.5]
    assert trend.remarks == ("the cost is unknown for 2 records and partly known for 1 record",)
    assert trend.remarks[0] in draw_trend(trend, 80)
    assert trend.remarks[0] in write_trend(trend).decode()


Form: TypeAlias = Literal["NFC", "NFD"]


@pytest.mark.parametrize("written", ["NFC", "NFD"])
def test_records_with_accents_in_two_forms_are_one_series(tmp_path: Path, written: Form) -> None:
    records = []
    forms: tuple[Form, Form] = ("NFD", "NFC")
    for number, form in enumerate(forms, 1):
        record = make_record(number)
        rows = [(*row[:4], normalize(form, "lang=é"), *row[5:]) for row in record.aggregates]
        records.append(replace(record, aggregates=rows))
    trend = collect(tmp_path, records, slice=normalize(written, "lang=é"), system="bm25")
    assert len(first(trend).points) == 2
