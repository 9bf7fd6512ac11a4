from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.commands.score import TREC_EVAL_MEASURES
from tests.command_line import invoke
from tests.tiny import write_spec


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    write_spec(tmp_path)
    return tmp_path / "data" / "qrels" / "test.tsv", tmp_path / "data" / "good.run"


def test_score_has_the_layout_of_trec_eval(files: tuple[Path, Path]) -> None:
    result = invoke("score", *files, "recip_rank", "P_5", "num_ret")
    assert result.exit_code == 0
    assert result.stdout == (
        "recip_rank            \tall\t0.6667\nP_5                   \tall\t0.2000\nnum_ret               \tall\t5\n"
    )


def test_score_of_each_query(files: tuple[Path, Path]) -> None:
    lines = invoke("score", *files, "rr", "gm_map", "-q").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["rr", "q1", "1.0000"],
        ["rr", "q2", "1.0000"],
        ["rr", "q3", "0.0000"],
        ["rr", "all", "0.6667"],
        ["gm_map", "all", lines[-1].split()[-1]],
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-c"], "0.5000"),
        (["--complete", "-l", "2"], "0.2500"),
        (["-M", "1", "--level", "1"], "0.6667"),
        (["--judged-only"], "0.6667"),
        (["--ties", "float64"], "0.6667"),
    ],
)
def test_score_takes_trec_evals_options(files: tuple[Path, Path], options: list[str], expected: str) -> None:
    assert invoke("score", *files, "rr", *options).stdout.split() == ["rr", "all", expected]


def test_score_without_measures_gives_trec_evals_list(files: tuple[Path, Path]) -> None:
    names = [line.split()[0] for line in invoke("score", *files).stdout.splitlines()]
    assert names == ["num_q", *TREC_EVAL_MEASURES]


def test_score_with_the_range_of_ties(tmp_path: Path, files: tuple[Path, Path]) -> None:
    qrels, _ = files
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    tied = tmp_path / "data" / "tied.run"
    assert invoke("score", qrels, tied, "rr", "--ties", "range").stdout.split() == [
        "rr", "all", "0.5000", "0.5000", "1.0000",
    ]  # fmt: skip
    content = json.loads(invoke("score", qrels, tied, "rr", "--ties", "range", "--format", "json", "-q").stdout)
    assert content == {"measures": {"rr": 0.5}, "ties": {"rr": [0.5, 1.0]}, "queries": {"q1": {"rr": 0.5}}}


@pytest.mark.parametrize(("ties", "value"), [("trec_eval", "0.5000"), ("trec_eval_2023", "1.0000")])
def test_score_can_follow_either_version_9_of_trec_eval(tmp_path: Path, ties: str, value: str) -> None:
    """The 2020 version has float32 scores, the 2023 version float64. 16777217 is not a float32."""
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q 0 a 1\n")
    run.write_text("q Q0 a 1 16777217 t\nq Q0 b 2 16777216 t\n")
    assert invoke("score", qrels, run, "recip_rank", "--ties", ties).stdout.split() == ["recip_rank", "all", value]


def test_score_does_not_print_queries_that_the_run_lacks(files: tuple[Path, Path]) -> None:
    """As with trec_eval -q -c, such a query counts in the mean but has no line."""
    lines = [line.split() for line in invoke("score", *files, "rr", "-q", "-c").stdout.splitlines()]
    assert lines == [["rr", "q1", "1.0000"], ["rr", "q2", "1.0000"], ["rr", "q3", "0.0000"], ["rr", "all", "0.5000"]]
    content = json.loads(invoke("score", *files, "rr", "-q", "-c", "--format", "json").stdout)
    assert content["queries"]["q4"] == {"rr": 0.0}


def test_score_shows_ids_without_control_characters_in_json(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("q\u202e\x9b 0 a 1\n")
    run.write_text("q\u202e\x9b Q0 a 1 1 t\n")
    printed = invoke("score", qrels, run, "rr", "-q", "--format", "json").stdout
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed)["queries"] == {"q\u202e\x9b": {"rr": 1.0}}


def test_score_suggests_an_option_that_it_has(files: tuple[Path, Path]) -> None:
    qrels, run = files
    run.write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d1 2 0.4 t\n")
    refused = invoke("score", qrels, run, "rr")
    assert refused.exit_code == 3
    assert "remove one, or set duplicates to 'first'" in refused.stderr
    assert "--duplicates [error|first]" in invoke("score", "--help").stdout
    assert invoke("score", qrels, run, "rr", "--duplicates", "first").stdout.split() == ["rr", "all", "1.0000"]


def test_score_explains_wrong_files_and_measures(files: tuple[Path, Path], tmp_path: Path) -> None:
    qrels, run = files
    unknown = invoke("score", qrels, run, "ncdg@10")
    assert unknown.exit_code == 2
    assert "did you mean 'ndcg@10'?" in unknown.stderr
    absent = invoke("score", qrels, tmp_path / "absent.run")
    assert absent.exit_code == 3
    assert "absent.run" in absent.stderr
    run.write_text("q77 Q0 d1 1 0.5 t\n")
    nothing = invoke("score", qrels, run)
    assert nothing.exit_code == 4
    assert nothing.stderr == f"rageval-spec: no query of {run} is in {qrels}\n"
