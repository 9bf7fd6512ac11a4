from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.commands.annotations import MOST, annotate
from rageval_spec.data.evaluation import Counted
from rageval_spec.plugin.context import Origin
from tests.command_line import invoke
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation
from tests.tiny import write_spec

ORIGIN = Origin("evals/a,b:c.yaml", (21, 22, 24))


def test_a_gate_is_annotated_at_its_line_worst_first() -> None:
    assert annotate(make_evaluation(), ORIGIN).splitlines() == [
        "::error file=evals/a%2Cb%3Ac.yaml,line=24,title=ndcg@10 ≥ 0.45::"
        "ndcg@10 of bm25 is 0.412, below the minimum 0.450",
        "::warning file=evals/a%2Cb%3Ac.yaml,line=22,title=ndcg@10 ≥ 0.45%2C target 0.5::"
        "ndcg@10 of dense is 0.488, below the target 0.500",
    ]


def test_a_failure_comes_first_and_a_spec_without_a_file_has_no_place() -> None:
    lines = annotate(replace(make_evaluation(), failures=("bm25: 100% lost",)), None).splitlines()
    assert lines[0] == "::error title=support-bot::bm25: 100%25 lost"
    assert lines[1].startswith("::error title=ndcg@10 ")


def test_there_are_at_most_ten() -> None:
    gate = make_evaluation().gates[2]
    assert len(annotate(replace(make_evaluation(), gates=(gate,) * 30), ORIGIN).splitlines()) == MOST == 10


@pytest.mark.parametrize(("counts_as", "level"), [("fail", "error"), ("warn", "warning"), ("pass", "notice")])
def test_an_inconclusive_gate_is_what_it_counts_as(counts_as: Counted, level: str) -> None:
    gate = replace(make_evaluation().gates[2], outcome="inconclusive", counts_as=counts_as)
    assert annotate(replace(make_evaluation(), gates=(gate,)), ORIGIN).startswith(f"::{level} ")


def test_a_name_cannot_begin_another_command() -> None:
    text = annotate(make_hostile_evaluation(), ORIGIN)
    assert len(text.splitlines()) == 2
    assert all(re.match(r"::(error|warning) file=\S+,line=\d+,title=[^:]+::", line) for line in text.splitlines())


def test_commands_are_off_while_results_are_printed(tmp_path: Path) -> None:
    gates = [{"metric": "rr", "min": 0.1}, {"metric": "precision@1", "system": "tied", "min": 0.9}]
    path = write_spec(tmp_path, name="::error::evil.yaml", gates=gates, reports=["terminal"])
    (tmp_path / ".git").mkdir()
    found = invoke("run", path, "--annotations", "github")
    assert found.exit_code == 1
    lines = found.stdout.splitlines()
    word = lines[0].removeprefix("::stop-commands::")
    assert re.fullmatch(r"[0-9a-f]{32}", word)
    end = lines.index(f"::{word}::")
    assert any("FAILED" in line for line in lines[:end])
    (annotation,) = lines[end + 1 :]
    number = path.read_text().splitlines().index("- metric: precision@1") + 1
    assert annotation.startswith(f"::error file=%3A%3Aerror%3A%3Aevil.yaml,line={number},title=precision@1")


def test_a_wrong_spec_is_annotated_at_the_line_of_each_error(tmp_path: Path) -> None:
    path = write_spec(tmp_path, metrics=["ncdg@10"], limits={"thread": 1})
    found = invoke("run", path, "--annotations", "github")
    assert found.exit_code == 2
    errors = [line for line in found.stdout.splitlines() if line.startswith("::error")]
    text = path.read_text().splitlines()
    places = [int(re.findall(r"line=(\d+)", line)[0]) for line in errors]
    assert [text[place - 1].strip() for place in places] == ["- ncdg@10", "thread: 1"]
    assert "did you mean 'ndcg@10'?" in errors[0]


def test_without_the_option_nothing_is_annotated(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.99}])
    assert "::" not in invoke("run", path).stdout
