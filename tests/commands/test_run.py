""""""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.commands.run import MOST, annotate, describe_seconds
from rageval_spec.data.outcomes import Counted
from rageval_spec.pipeline.execution.runs import Timing
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import SpecOrigin
from rageval_spec.runner import RunOutcome
from tests.command_line import invoke, start
from tests.sample_evaluation import alter, make_evaluation, make_hostile_evaluation
from tests.tiny import Failing, Install, write_spec


def test_run_prints_a_table_and_exits_with_0(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert "✓ Ready: " in result.stdout
    assert result.stderr == f"wrote the results to {tmp_path / 'out'}\n"
    assert json.loads((tmp_path / "out" / "results.json").read_bytes())["verdict"] == "pass"


def test_a_failed_gate_exits_with_1(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "--set", "gates.0.min=0.99", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "✗ Not ready: " in result.stdout


def test_quiet_prints_only_why_the_exit_code_is_not_0(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "-q", "--set", "gates.0.min=0.99", "-o", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "rageval-spec: 2 of 2 gates failed\n"
    assert (tmp_path / "out" / "results.json").is_file()
    result = invoke("run", spec, "-q", "-o", tmp_path / "out")
    assert (result.exit_code, result.output) == (0, "")


def test_a_wrong_spec_exits_with_2_and_every_diagnostic(tmp_path: Path) -> None:
    path = write_spec(tmp_path, metrics=["ncdg@10"], limits={"thread": 1})
    for command in ("run", "validate", "plan"):
        result = invoke(command, path)
        assert result.exit_code == 2
        assert "did you mean 'ndcg@10'?" in result.stderr
        assert "did you mean 'threads'?" in result.stderr
        assert result.stdout == ""


def test_a_failed_system_exits_with_3_after_the_results_of_the_others(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    systems = {"good": {"use": "file", "path": "data/good.run"}, "broken": {"use": "failing"}}
    path = write_spec(tmp_path, systems=systems)
    result = invoke("run", path)
    assert result.exit_code == 3
    assert "0.500" in result.stdout
    failure = "broken on fruit: ConnectionError: nobody at the other end"
    assert " ".join(result.stdout.split()).count(failure) == 1
    assert failure not in result.stderr
    assert result.stderr.endswith("1 evaluation of a system failed; the others are complete\n")
    for unseen in (
        invoke("run", path, "--quiet"),
        invoke("run", write_spec(tmp_path, systems=systems, reports=["json"])),
    ):
        assert f"rageval-spec: {failure}\n" in unseen.stderr and not unseen.stdout
    assert "Traceback" not in result.stderr
    assert "Traceback" in invoke("run", path, env={"RAGEVAL_DEBUG": "1"}).stderr
    alone = write_spec(tmp_path, systems={"broken": {"use": "failing"}})
    assert invoke("run", alone).exit_code == 4


def test_a_bad_file_exits_with_3_and_names_the_line(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\n")
    result = invoke("run", spec)
    assert result.exit_code == 3
    assert re.match(r"rageval-spec: .*test\.tsv:2", result.stderr)


def test_a_damaged_store_is_a_warning_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert invoke("run", path, "--store", tmp_path / "store").exit_code == 0
    (partition,) = (tmp_path / "store").rglob("*.parquet")
    partition.write_bytes(b"")
    result = invoke("run", path, "--store", tmp_path / "store")
    assert result.exit_code == 0
    assert re.match(r"rageval-spec: warning: store: .* is damaged and will be computed again", result.stderr)


def test_the_store_can_be_set_by_a_variable_or_turned_off(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert invoke("run", path, "--no-store").exit_code == 0
    assert not (tmp_path / ".rageval" / "store").exists()
    assert invoke("run", path, env={"RAGEVAL_STORE": str(tmp_path / "elsewhere")}).exit_code == 0
    assert (tmp_path / "elsewhere" / "tables").is_dir()
    assert not (tmp_path / ".rageval" / "store").exists()
    assert invoke("run", path).exit_code == 0
    assert (tmp_path / ".rageval" / "store" / "tables").is_dir()


def test_a_saved_evaluation_can_be_a_baseline_for_the_next(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    assert invoke("run", path, "--save-as", "main").exit_code == 0
    gated = write_spec(tmp_path, gates=[{"metric": "rr", "baseline": "main", "max_drop": 0.0}])
    assert invoke("run", gated).exit_code == 0


def test_judging_imports_neither_numpy_nor_models_that_are_not_used(tmp_path: Path) -> None:
    """Those imports would add a tenth of a second to every short evaluation."""
    rows = [
        {"id": number, "question": "What is red?", "answer": "Apples are red.", "contexts": ["Apples are red."]}
        for number in range(8)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "metrics": [
            {"use": "faithfulness", "judge": "overlap"},
            {"use": "answer_relevancy", "judge": "overlap"},
        ],
        "reports": ["json", "parquet"],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(content))
    code = "import sys; from rageval_spec.cli import cli; cli.main(['run', *sys.argv[1:]])"
    check = f"import atexit, sys; atexit.register(lambda: print(*sorted(set(sys.modules)), file=sys.stderr)); {code}"
    command = [sys.executable, "-c", check, str(path), "-q", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "polars" in loaded
    assert not {"numpy", "onnxruntime", "transformers", "tokenizers", "scipy", "pandas"} & loaded
    assert json.loads((tmp_path / "out" / "results.json").read_text())["models"] == {}


def test_numbers_that_are_too_large_are_refused(spec: Path) -> None:
    result = invoke("run", spec, "--limit", "99999999999999999999")
    assert (result.exit_code, "write a whole number" in result.stderr) == (2, True)
    for key in ("resamples", "permutations"):
        result = invoke("validate", spec, "--set", f"statistics.{key}=100000001")
        assert result.exit_code == 2
        assert key in result.stderr


def test_the_exit_code_stays_the_same_if_the_reader_goes_away(spec: Path, tmp_path: Path) -> None:
    with start("run", spec, "-o", tmp_path / "out", "--set", "gates.0.min=0.99") as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1


ORIGIN = SpecOrigin("evals/a,b:c.yaml", (21, 22, 24))


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
    assert any("Not ready" in line for line in lines[:end])
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


def timed(*, metric: float) -> RunOutcome:
    metrics = [{"use": "faithfulness", "judge": "strict"}, {"use": "token_f1"}]
    evaluation = alter(make_evaluation(), metrics=("faithfulness", "token_f1"), spec={"metrics": metrics})
    spent = Budget()
    spent.usage.time("faithfulness", 30, metric)
    spent.usage.time("faithfulness", 10, metric)
    spent.usage.time("token_f1", 0, 0.5)
    spent.usage.time("exact_match", 40, 0.01)
    spent.usage.time_answers("app", 40, 0.25)
    spent.usage.time_answers("stored", 0, 0.01)
    timings = tuple(Timing("golden", name, 0.3, 0.3, 10, 5, name == "dense", 0) for name in ("bm25", "dense"))
    return RunOutcome(evaluation, (), (), (), timings=timings, spent=spent)


def test_the_seconds_of_systems_and_metrics_are_told_without_those_of_stored_runs() -> None:
    told = "seconds: retrieval by bm25 0.3, 40 answers of app 0.2, faithfulness 12.0 (judge strict)"
    assert describe_seconds(timed(metric=6.0)) == told


def test_nothing_is_told_of_less_than_a_second() -> None:
    assert describe_seconds(timed(metric=0.2)) == ""
