from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.openmetrics import OpenmetricsNode, OpenmetricsReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

SMALL = make_evaluation(systems=("bm25", "dense"), metrics={"ndcg@10": (0.41234, 0.48765)})
BOTH = pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation()], ids=["plain", "hostile"])


def render(evaluation: Evaluation) -> bytes:
    return OpenmetricsReport(OpenmetricsNode(use="openmetrics"), Context("openmetrics")).render(evaluation)


def list_lines(evaluation: Evaluation, name: str) -> list[str]:
    return [line for line in render(evaluation).decode().splitlines() if line.startswith(f"{name}{{")]


def test_golden() -> None:
    assert_golden("metrics.txt", render(SMALL))


@BOTH
def test_promtool_accepts_it(evaluation: Evaluation) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    checked = subprocess.run([promtool, "check", "metrics"], input=render(evaluation), capture_output=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@BOTH
def test_the_parser_of_openmetrics_reads_the_same_labels_and_numbers(evaluation: Evaluation) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus-client is not installed")
    families = {one.name: one.samples for one in parser.text_string_to_metric_families(render(evaluation).decode())}
    means = [one.value for one in families["rageval_value"]]
    assert means == [one.mean for one in evaluation.aggregates]
    assert len(families["rageval_gate_observed"]) == len(evaluation.gates)
    assert {"spec", "dataset", "system", "metric", "slice", "statistic"} == {*families["rageval_value"][0].labels}


@BOTH
def test_every_line_is_a_comment_or_a_series_with_one_number(evaluation: Evaluation) -> None:
    """GitLab splits a line as a shell does, and takes the second word as the value."""
    text = render(evaluation).decode()
    assert text.endswith("\n# EOF\n")
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len({*series})
    assert all(line.startswith("rageval_") and line.endswith("}") for line in series)


def test_a_number_that_is_missing_has_no_line_and_its_count_is_0() -> None:
    unscored = replace(SMALL.aggregates[0], mean=None, interval=None, scored=0)
    gate = replace(SMALL.gates[0], observed=None)
    evaluation = replace(SMALL, aggregates=(unscored,), gates=(gate,), failures=("bm25: out of memory",))
    assert list_lines(evaluation, "rageval_value") == []
    assert list_lines(evaluation, "rageval_interval_low") == []
    assert list_lines(evaluation, "rageval_gate_observed") == []
    assert list_lines(evaluation, "rageval_queries_scored")[0].endswith("} 0.0")
    assert list_lines(evaluation, "rageval_failures") == ['rageval_failures{spec="support-bot"} 1.0']
    assert 'rageval_outcome{spec="support-bot",outcome="error"} 1.0' in list_lines(evaluation, "rageval_outcome")


def test_each_gate_has_one_outcome() -> None:
    lines = list_lines(SMALL, "rageval_gate_outcome")
    shown = [line for line in lines if line.endswith(" 1.0")]
    assert len(shown) == len(SMALL.gates)
    assert 'gate="3"' in shown[2]
    assert 'outcome="fail"' in shown[2]
