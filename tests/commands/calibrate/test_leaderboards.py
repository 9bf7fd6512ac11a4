"""`calibrate --leaderboards`: what a user reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.answered_evaluation import answered, sample, save, value
from tests.command_line import invoke

SYSTEMS = ("a", "b", "c", "d")


def write(path: Path, means: dict[str, float], *, topics: int = 8) -> Path:
    rows = [
        f"{system} t{topic} ndcg {mean + 0.01 * (topic - (topics - 1) / 2):.4f}"
        for system, mean in means.items()
        for topic in range(topics)
    ]
    stated = [f"{system} all ndcg {mean}" for system, mean in means.items()]
    path.write_text("\n".join([*rows, *stated]) + "\n")
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return write(tmp_path / "people.tsv", {"a": 0.8, "b": 0.6, "c": 0.4, "d": 0.2})


def test_two_leaderboards(truth: Path, tmp_path: Path) -> None:
    judged = write(tmp_path / "judge.tsv", {"a": 0.9, "b": 0.6, "c": 0.3, "d": 0.4})
    result = invoke("calibrate", "--leaderboards", truth, judged)
    assert result.exit_code == 0, result.output
    assert "judge beside people, ndcg: 4 systems, 8 topics" in result.output
    assert "tau_AP (the top counts more)" in result.output
    assert "Moved the most" in result.output
    (found,) = json.loads(invoke("calibrate", "--leaderboards", truth, judged, "--format", "json").output)
    (agreement,) = found["agreements"]
    values = {one["name"]: one["value"] for one in agreement["correlations"]}
    assert values["tau_b"] == pytest.approx(4 / 6)
    assert agreement["correlations"][0]["interval"] is None  # all topics have the same order


def test_the_same_order(truth: Path) -> None:
    assert "Both put all systems in the same order." in invoke("calibrate", "--leaderboards", truth, truth).output


def test_results_are_a_leaderboard(truth: Path, tmp_path: Path) -> None:
    means = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
    values = [value(f"t{n}", "ndcg", mean + n / 100, system=system) for system, mean in means.items() for n in range(8)]
    folder = save(
        answered(values, [sample(f"t{n}", system=system) for system in means for n in range(8)]), tmp_path / "out"
    )
    result = invoke("calibrate", "--leaderboards", truth, folder, "--format", "json")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.output)
    assert {one["name"]: one["value"] for one in found["agreements"][0]["correlations"]}["tau"] == -1


def test_measures_of_different_names_are_all_paired(truth: Path, tmp_path: Path) -> None:
    other = tmp_path / "judge.csv"
    other.write_text("run,topic,measure,value\n" + "".join(f"{one},all,vital,{n}\n" for n, one in enumerate(SYSTEMS)))
    result = invoke("calibrate", "--leaderboards", truth, other)
    assert "vital and ndcg: 4 systems, means only" in result.output
    assert "There are no intervals: they need a value of each topic" in result.output


def test_systems_and_topics_that_only_one_has_are_named(truth: Path, tmp_path: Path) -> None:
    judged = write(tmp_path / "judge.tsv", {"a": 0.9, "b": 0.6, "c": 0.3, "x": 0.4}, topics=6)
    output = invoke("calibrate", "--leaderboards", truth, judged).output
    assert "only one of the two has them: d and x" in output
    assert "Left out, from the means too: 2 topics that some system lacks." in output


def test_mistakes(truth: Path, tmp_path: Path) -> None:
    few = write(tmp_path / "few.tsv", {"a": 0.1, "z": 0.2})
    result = invoke("calibrate", "--leaderboards", truth, few)
    assert (
        result.exit_code == 2 and "people and few share 1 system; a rank correlation needs at least 3" in result.output
    )
    result = invoke("calibrate", "--leaderboards", truth, truth, "--metric", "ndgc")
    assert result.exit_code == 2 and "did you mean 'ndcg'" in result.output
    result = invoke("calibrate", "results", "--leaderboards", truth, truth)
    assert result.exit_code == 2 and "leave out RESULTS and --labels" in result.output
    assert invoke("calibrate", "--leaderboards", truth, tmp_path / "none.tsv").exit_code == 2


def test_coefficients_and_intervals_are_of_the_same_topics(tmp_path: Path) -> None:
    """A system that lacks a hard topic would have a better mean than on the topics that all have."""
    names = ("a", "b", "c", "d")
    full = {(one, topic): rank / 10 + topic / 20 for rank, one in enumerate(names) for topic in range(8)}
    full |= {(one, 8): 0.0 for one in names}
    for name, left_out in (("people", ()), ("judge", (("a", 8), ("b", 8)))):
        rows = [f"{one} t{topic} ndcg {value}" for (one, topic), value in full.items() if (one, topic) not in left_out]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["run topic measure value", *rows]))
    result = invoke("calibrate", "--leaderboards", tmp_path / "people.tsv", tmp_path / "judge.tsv", "--format", "json")
    (agreement,) = json.loads(result.output)[0]["agreements"]
    assert (agreement["topics"], agreement["left_out"]) == (8, [[], 1])
    assert {one["name"]: one["value"] for one in agreement["correlations"]}["tau"] == 1
    assert agreement["systems"][0] == ["d", pytest.approx(0.475), pytest.approx(0.475)]


def test_tied_systems_share_a_rank(truth: Path, tmp_path: Path) -> None:
    judged = write(tmp_path / "judge.tsv", dict.fromkeys(SYSTEMS, 0.5))
    lines = [line.split() for line in invoke("calibrate", "--leaderboards", truth, judged).output.splitlines()]
    assert [line[:3] for line in lines if line and line[0] in SYSTEMS] == [
        ["a", "1", "2.5"], ["d", "4", "2.5"], ["b", "2", "2.5"], ["c", "3", "2.5"],
    ]  # fmt: skip
