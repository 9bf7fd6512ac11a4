""""""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.statistics.aggregation import compute_smallest_drop, count_queries
from tests.command_line import invoke
from tests.onnx_from_checkpoints.folders import DETECTOR, write_detector
from tests.pipeline.execution.test_question_clusters import write
from tests.tiny import write_spec


def test_plan_in_both_formats(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert "1 retrieval to compute" in invoke("plan", path).stdout
    assert invoke("run", path).exit_code == 0
    assert "in the store" in invoke("plan", path).stdout
    steps = json.loads(invoke("plan", path, "--format", "json").stdout)["steps"]
    assert [step["state"] for step in steps if step["kind"] == "retrieve"] == ["in the store"]


def test_what_is_known_of_a_judges_model_is_shown(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(
        json.dumps({"query_id": "q", "question": "Why?", "answer": "The cat sat.", "contexts": ["A cat sat."]})
    )
    name = "KRLabsOrg/lettucedect-210m-eurobert-de-v1"
    folder = write_detector(tmp_path / "models" / "own", config={**DETECTOR, "max_position_embeddings": 512})
    path = write_spec(
        tmp_path,
        datasets={"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"bot": {"use": "file", "path": "golden.jsonl"}},
        models={"lettuce": {"use": "onnx", "model": str(folder), "published_as": name}},
        judges={"spans": {"use": "detector", "model": "lettuce"}},
        metrics=[{"use": "faithfulness", "judge": "spans"}],
    )
    line = f"judges.spans: {name}, card and code of 2026-11-22, prompt in German\n"
    assert line in invoke("plan", path).stdout
    assert line in invoke("validate", path).stdout


SYSTEMS = {
    "bm25": {"use": "bm25"},
    "flat": {"use": "bm25", "b": 0.0, "k1": 0.1},
}
GATES = [{"metric": "ndcg@10", "system": "flat", "baseline": "bm25", "max_drop": 0.02, "alpha": 0.1}]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write_spec(
        tmp_path, systems=SYSTEMS, metrics=["ndcg@10", "num_ret"], gates=GATES, reports=["json", "parquet"]
    )


def rows(*arguments: str | Path) -> list[dict[str, object]]:
    done = invoke("plan", *arguments, "--power", "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)["rows"]
    return found


def read_values(folder: Path, system: str) -> list[float]:
    values = pl.read_parquet(folder / "values.parquet")
    wanted = (pl.col("system") == system) & (pl.col("metric") == "ndcg@10") & (pl.col("status") == "scored")
    return values.filter(wanted).sort("query_id")["value"].to_list()


def test_the_spread_of_a_pair_of_systems_comes_from_their_differences(spec: Path, tmp_path: Path) -> None:
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code in (0, 1)
    base, own = (read_values(tmp_path / "out", name) for name in ("bm25", "flat"))
    spread = statistics.stdev(one - other for one, other in zip(own, base, strict=True))
    found = next(row for row in rows(spec, "--from", tmp_path / "out") if row["system"] == "flat")
    assert found["queries"] == len(own)
    assert found["sd"] == pytest.approx(spread)
    assert found["alpha"] == 0.1
    smallest = compute_smallest_drop(spread, len(own), 0.1)
    assert found["smallest_drop"] == (None if smallest is None else pytest.approx(smallest))
    assert found["needed"] == count_queries(spread, 0.02, 0.1)


def test_a_share_is_of_the_mean_of_the_baseline_where_that_is_known(tmp_path: Path) -> None:
    gates = [{**GATES[0], "max_drop": "5%"}]
    spec = write_spec(tmp_path, systems=SYSTEMS, metrics=["ndcg@10"], gates=gates, reports=["json", "parquet"])
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code in (0, 1)
    amount = 0.05 * statistics.fmean(read_values(tmp_path / "out", "bm25"))
    found = next(row for row in rows(spec, "--from", tmp_path / "out") if row["system"] == "flat")
    assert found["max_drop"] == pytest.approx(amount)
    assert found["needed"] == count_queries(float(str(found["sd"])), amount, 0.1)
    shown = invoke("plan", spec, "--power", "--from", tmp_path / "out").stdout
    assert f"  {float(f'{amount:.4g}'):g}: " in shown
    (stated,) = rows(spec, "--sd", "0.2")
    assert (stated["max_drop"], stated["needed"]) == (None, None)


def test_one_evaluation_of_a_system_counts_as_unrelated_to_the_next(spec: Path, tmp_path: Path) -> None:
    invoke("run", spec, "-o", tmp_path / "out")
    found = next(row for row in rows(spec, "--from", tmp_path / "out") if row["system"] == "bm25")
    assert found["baseline"] == "another evaluation"
    assert found["sd"] == pytest.approx(math.sqrt(2) * statistics.stdev(read_values(tmp_path / "out", "bm25")))
    text = invoke("plan", spec, "--power", "--from", tmp_path / "out").stdout
    assert "as if a second one were unrelated" in " ".join(text.split())
    assert "num_ret" not in text


def test_two_evaluations_tell_the_spread_of_their_differences(spec: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        invoke("run", spec, "-o", tmp_path / name)
    found = rows(spec, "--from", tmp_path / "a", "--from", tmp_path / "b")
    assert {row["system"]: row["sd"] for row in found} == {"bm25": 0.0, "flat": 0.0}
    both = ("--from", tmp_path / "a", "--from", tmp_path / "b")
    assert "An sd of 0 does not show the spread" in invoke("plan", spec, "--power", *both).stdout
    assert "An sd of 0" not in invoke("plan", spec, "--power", "--sd", "0.2").stdout


def test_a_stated_spread_needs_no_earlier_values(spec: Path) -> None:
    text = invoke("plan", spec, "--power", "--sd", "0.25").stdout
    [header, _, first, *_] = text.splitlines()[1:]
    assert header.split()[:3] == ["dataset", "system", "metric"]
    assert f"0.02: {count_queries(0.25, 0.02, 0.1)} questions" in first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sd", "0.2"), "--from and --sd need --power"),
        (("--power", "--sd", "0.2", "--from", "main"), "use --from or --sd, not both"),
        (("--power", *("--from", "main") * 3), "--from takes one or two evaluations"),
        (("--power", "--from", "nowhere"), "'nowhere' is neither a results folder nor a label"),
    ],
)
def test_what_cannot_be_asked(spec: Path, arguments: tuple[str, ...], message: str) -> None:
    done = invoke("plan", spec, *arguments)
    assert done.exit_code != 0
    assert message in done.stderr


def designed(folder: Path, **sections: Any) -> Path:
    """A spec with 40 questions in 10 clusters, whose answers are right or wrong together."""
    rows = [{"kind": "easy" if at < 30 else "hard", "source": f"s{at // 4}"} for at in range(40)]
    right = [int(at // 4 % 3 > 0) for at in range(40)]
    return write(folder, rows, {"bot": right}, **sections)


def test_clusters_need_more_questions(tmp_path: Path) -> None:
    spec = designed(tmp_path, cluster="source")
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code == 0
    [found] = rows(spec, "--from", tmp_path / "out")
    values = [float(at // 4 % 3 > 0) for at in range(40)]
    # Ten clusters of equal size: the variance of the mean is that of their means.
    effect = statistics.variance(values[::4]) / 10 / (statistics.variance(values) / 40)
    assert found["design_effect"] == pytest.approx(effect)
    assert found["sd"] == pytest.approx(math.sqrt(2 * effect) * statistics.stdev(values))
    told = invoke("plan", spec, "--power", "--from", tmp_path / "out").stdout
    assert f"Clusters and weights count: the variance of a mean is {effect:.1f} times that of independent" in told


def test_the_power_of_weighted_questions_is_told(tmp_path: Path) -> None:
    spec = designed(tmp_path, weights="mix.csv")
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code == 0
    [found] = rows(spec, "--from", tmp_path / "out")
    effect = found["design_effect"]
    assert isinstance(effect, float) and effect > 1


def test_results_without_the_clusters_of_the_spec_are_refused(tmp_path: Path) -> None:
    spec = designed(tmp_path)
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code == 0
    done = invoke("plan", spec, "--power", "--from", tmp_path / "out", "--set", "cluster=source")
    assert done.exit_code == 2
    assert "knows no clusters or weights of 'golden', which this spec has; run the spec first" in done.stderr


def test_a_stated_sd_says_that_it_has_no_clusters(tmp_path: Path) -> None:
    spec = designed(tmp_path, cluster="source")
    told = invoke("plan", spec, "--power", "--sd", "0.3").stdout
    assert "The stated sd does not include the spec's clusters and weights." in told


def test_without_clusters_there_is_no_design_effect(tmp_path: Path) -> None:
    spec = designed(tmp_path)
    assert invoke("run", spec, "-o", tmp_path / "out").exit_code == 0
    [found] = rows(spec, "--from", tmp_path / "out")
    assert "design_effect" not in found
