"""Production compared with an evaluation of the history, and why that is sometimes not possible."""

import json
from pathlib import Path

import numpy as np
import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.monitoring.assembly import open_ledger
from rageval_spec.monitoring.looks.baselines import BaselineChoice, choose_baseline
from rageval_spec.monitoring.looks.detectors import FixedBaseline
from rageval_spec.monitoring.looks.looking import Watch
from rageval_spec.monitoring.looks.windows import WindowReader
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import load
from rageval_spec.statistics.intervals import Resampling
from tests.command_line import invoke
from tests.monitoring.seen_traces import BEGAN, fill

EVALUATION = """
version: 1
name: live-bot
datasets: {golden: {use: golden, path: golden.jsonl}}
systems: {live: {use: file, path: answers.jsonl}}
metrics: [{use: faithfulness, judge: overlap}, latency]
"""
LIVE = """
version: 1
name: live-bot
systems: {{live: {{use: file, path: traces.jsonl, follow: true}}}}
metrics: [{{use: faithfulness, judge: {judge}}}, latency, error_rate]
judges: {{strict: {{use: overlap, threshold: 0.9}}}}
monitor:
  baseline: {baseline}
  alerts: [{{metric: faithfulness, drift: {{high: 20%}}}}, {{metric: error_rate, drift: {{high: 5pp}}}}]
"""
GOOD, BAD = "Ada Lovelace wrote the first program.", "Bob Marley baked seven cakes in Paris."


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose history has an evaluation of 60 answers, of which 6 are wrong."""
    folder = tmp_path_factory.mktemp("recorded")
    rows = range(60)
    golden = [{"id": f"q{at}", "question": f"Who wrote program {at}?"} for at in rows]
    answers = [
        {"id": f"q{at}", "answer": GOOD if at % 10 else BAD, "contexts": [GOOD], "seconds": 1.0 + at / 60}
        for at in rows
    ]
    (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, golden)))
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    (folder / "eval.yaml").write_text(EVALUATION)
    outcome = invoke("run", folder / "eval.yaml", "--save-as", "main", "--output", folder / "results")
    assert outcome.exit_code == 0, outcome.output
    return folder


def choose(folder: Path, baseline: str, judge: str = "overlap") -> BaselineChoice:
    (folder / "live.yaml").write_text(LIVE.format(baseline=baseline, judge=judge))
    spec = load(folder / "live.yaml")
    assert spec.monitor is not None
    return choose_baseline(spec, build_parts(spec), spec.monitor.baseline)


def test_a_label_means_the_values_of_a_record(recorded: Path) -> None:
    found = choose(recorded, "main").find("faithfulness")
    assert isinstance(found, FixedBaseline)
    assert len(found.values) == 60
    assert found.values.mean() == pytest.approx(0.9)


def test_another_judge_is_not_comparable(recorded: Path) -> None:
    reason = choose(recorded, "main", "strict").find("faithfulness")
    assert isinstance(reason, str)
    assert reason.startswith("faithfulness is not comparable with main: the judge changed: ")
    assert isinstance(choose(recorded, "main", "strict").find("latency"), FixedBaseline)


def test_a_metric_that_the_record_lacks_is_told(recorded: Path) -> None:
    reason = choose(recorded, "main").find("error_rate")
    assert reason == "error_rate cannot be compared with main: it has no values of error_rate"


def test_a_record_that_is_not_there_is_an_error(recorded: Path) -> None:
    with pytest.raises(DataError, match="nightly"):
        choose(recorded, "nightly")


def test_days_before_need_no_record(recorded: Path) -> None:
    assert choose(recorded, "{window: 14d}").find("faithfulness") == 14.0


def test_a_dataset_means_its_newest_record(recorded: Path) -> None:
    live = LIVE.format(baseline="{dataset: golden}", judge="overlap")
    text = live.replace("systems:", "datasets: {golden: {use: golden, path: golden.jsonl}}\nsystems:", 1)
    (recorded / "live.yaml").write_text(text)
    (recorded / "traces.jsonl").touch()
    spec = load(recorded / "live.yaml")
    assert spec.monitor is not None
    found = choose_baseline(spec, build_parts(spec), spec.monitor.baseline).find("faithfulness")
    assert isinstance(found, FixedBaseline)
    assert found.name == "the newest record of golden"


def test_no_record_with_the_dataset_says_what_to_do(tmp_path: Path, recorded: Path) -> None:
    text = (recorded / "live.yaml").read_text().replace("{window: 14d}", "{dataset: golden}")
    text = (
        text
        if "datasets" in text
        else text.replace("systems:", "datasets: {golden: {use: golden, path: golden.jsonl}}\nsystems:", 1)
    )
    (tmp_path / "golden.jsonl").write_text((recorded / "golden.jsonl").read_text())
    (tmp_path / "live.yaml").write_text(text)
    (tmp_path / "traces.jsonl").touch()
    spec = load(tmp_path / "live.yaml")
    assert spec.monitor is not None
    with pytest.raises(UsageError, match="no record of the history has the dataset 'golden'; evaluate it once"):
        choose_baseline(spec, build_parts(spec), spec.monitor.baseline)


def test_alerts_and_windows_compare_with_the_record(recorded: Path) -> None:
    baseline = choose(recorded, "main")
    spec = load(recorded / "live.yaml")
    assert spec.monitor is not None
    with open_ledger(spec) as ledger:
        parts = build_parts(spec)
        series = {
            name: Series(ledger.find_series(name, "", {}, BEGAN), name, metric)
            for name, metric in parts.answer_metrics.items()
        }
        watch = Watch(
            spec.monitor, ledger, WindowReader(ledger, 60, Resampling(permutations=999)), series, 300, baseline
        )
        start = BEGAN // 3600 * 3600
        watch.look(start)
        fill(ledger, series["faithfulness"].id, np.tile([1.0, 0.0], 100).tolist(), began=start + 1, step=15)
        fall, unknown = (one for one in watch.look(start + 3900) if "changed" in one.name)
        assert (fall.verdict, fall.severity) == ("holds", "high")
        assert fall.summary.startswith("faithfulness fell by ")
        assert "from 0.900" in fall.summary
        assert (unknown.verdict, unknown.summary) == (
            "undecided",
            "error_rate cannot be compared with main: it has no values of error_rate",
        )
        rows = {(one.metric, one.window): compared for one, compared in watch.compare_windows(start + 3900)}
        hour = rows["faithfulness", "hour"]
        assert hour.baseline == "main"
        assert hour.difference is not None
        assert hour.difference.difference == pytest.approx(-0.4, abs=0.02)
        assert rows["error_rate", "hour"].reason is not None
        assert rows["latency", "hour"].reason == "the window has no judged trace"
