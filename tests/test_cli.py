from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from rageval_spec.cli import cli
from rageval_spec.commands.score import TREC_EVAL_MEASURES
from tests.tiny import Failing, Install, install, write_spec

__all__ = ["install"]

COMMANDS = ("benchmark", "init", "metrics", "plan", "run", "schema", "score", "validate")


def invoke(*arguments: str | Path, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], env=env)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rageval_spec", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1}], reports=["terminal", "json"])


# The front


def test_help_of_every_command_has_an_example() -> None:
    assert all(command in invoke("--help").output for command in COMMANDS)
    for command in COMMANDS:
        result = invoke(command, "--help")
        assert result.exit_code == 0
        assert f"rageval-spec {command}" in result.output


def test_version() -> None:
    assert re.fullmatch(r"rageval-spec, version \d+\.\d+\.\d+\S*\n", invoke("--version").output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "Missing argument 'SPEC'."),
        (["run", "spec.yaml", "--lmit", "3"], "No such option '--lmit'. (Did you mean"),
        (["run", "spec.yaml", "--limit", "0"], "0 is not in the range 1<=x<="),
        (["score", "a", "b", "--ties", "fair"], "'fair' is not one of"),
    ],
)
def test_a_wrong_command_line_ends_with_2(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("rageval-spec: ")
    assert message in result.stderr
    assert "--help" in result.stderr
    assert result.stdout == ""


def test_no_command_shows_help_and_ends_with_2() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_an_unexpected_error_is_one_line_and_3(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.runner.run", lambda *arguments: 1 / 0)
    result = invoke("run", spec)
    assert result.exit_code == 3
    expected = "rageval-spec: internal error: ZeroDivisionError: division by zero; RAGEVAL_DEBUG=1 shows where\n"
    assert result.stderr == expected
    debugged = invoke("run", spec, env={"RAGEVAL_DEBUG": "1"})
    assert "Traceback" in debugged.stderr


# run


def test_run_answers_with_a_table_and_0(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert "PASSED" in result.stdout
    assert result.stderr == f"wrote {tmp_path / 'out' / 'results.json'}\n"
    assert json.loads((tmp_path / "out" / "results.json").read_bytes())["verdict"] == "pass"


def test_a_failed_gate_is_1(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "--set", "gates.0.min=0.99", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


def test_quiet_says_why_it_is_not_0_and_nothing_else(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "-q", "--set", "gates.0.min=0.99", "-o", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "rageval-spec: 2 of 2 gates failed\n"
    assert (tmp_path / "out" / "results.json").is_file()
    result = invoke("run", spec, "-q", "-o", tmp_path / "out")
    assert (result.exit_code, result.output) == (0, "")


def test_a_wrong_spec_is_2_with_every_diagnostic(tmp_path: Path) -> None:
    path = write_spec(tmp_path, metrics=["ncdg@10"], limits={"thread": 1})
    for command in ("run", "validate", "plan"):
        result = invoke(command, path)
        assert result.exit_code == 2
        assert "did you mean 'ndcg@10'?" in result.stderr
        assert "did you mean 'threads'?" in result.stderr
        assert result.stdout == ""


def test_a_failed_system_is_3_after_the_others_results(tmp_path: Path, install: Install) -> None:
    install("systems", "failing", Failing)
    systems = {"good": {"use": "file", "path": "data/good.run"}, "broken": {"use": "failing"}}
    path = write_spec(tmp_path, systems=systems)
    result = invoke("run", path)
    assert result.exit_code == 3
    assert "0.5000" in result.stdout
    assert "rageval-spec: broken on fruit: ConnectionError: nobody at the other end\n" in result.stderr
    assert result.stderr.endswith("1 evaluation of a system failed; the others are complete\n")
    assert "Traceback" not in result.stderr
    assert "Traceback" in invoke("run", path, env={"RAGEVAL_DEBUG": "1"}).stderr
    alone = write_spec(tmp_path, systems={"broken": {"use": "failing"}})
    assert invoke("run", alone).exit_code == 4


def test_a_bad_file_is_3_with_its_line(spec: Path, tmp_path: Path) -> None:
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
    assert re.match(r"rageval-spec: warning: store: .* is damaged and is computed again", result.stderr)


def test_the_store_may_be_named_by_the_environment_or_left_out(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert invoke("run", path, "--no-store").exit_code == 0
    assert not (tmp_path / ".rageval").exists()
    assert invoke("run", path, env={"RAGEVAL_STORE": str(tmp_path / "elsewhere")}).exit_code == 0
    assert (tmp_path / "elsewhere" / "tables").is_dir()
    assert not (tmp_path / ".rageval").exists()
    assert invoke("run", path).exit_code == 0
    assert (tmp_path / ".rageval" / "store" / "tables").is_dir()


def test_a_saved_run_is_a_baseline_for_the_next(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    assert invoke("run", path, "--save-as", "main").exit_code == 0
    gated = write_spec(tmp_path, gates=[{"metric": "rr", "baseline": "main", "max_drop": 0.0}])
    assert invoke("run", gated).exit_code == 0


# validate, plan, schema


def test_validate_counts_what_is_there(spec: Path) -> None:
    result = invoke("validate", spec)
    assert result.exit_code == 0
    assert result.stdout == f"{spec}: valid, 1 dataset, 2 systems, 2 metrics, 1 gate\n"
    assert result.stderr == ""


def test_validate_takes_overrides(spec: Path) -> None:
    assert invoke("validate", spec, "--set", "ranking.ties=sideways").exit_code == 2


def test_validate_imports_nothing_heavy(spec: Path) -> None:
    code = "import sys; from rageval_spec.cli import cli; cli.main(['validate', sys.argv[1]])"
    check = f"import atexit, sys; atexit.register(lambda: print(*sorted(set(sys.modules)), file=sys.stderr)); {code}"
    done = subprocess.run([sys.executable, "-c", check, str(spec)], capture_output=True, text=True, check=True)
    heavy = {"polars", "numpy", "rich", "bm25s", "jsonschema", "pyarrow", "scipy", "pandas"}
    assert not heavy & set(done.stderr.split())


def test_judging_imports_no_numpy_and_no_model_that_nobody_asks(tmp_path: Path) -> None:
    """It would be a tenth of a second of every short evaluation."""
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


def test_plan_in_both_formats(tmp_path: Path) -> None:
    path = write_spec(tmp_path, systems={"bm25": {"use": "bm25"}})
    assert "1 retrieval to compute" in invoke("plan", path).stdout
    assert invoke("run", path).exit_code == 0
    assert "in the store" in invoke("plan", path).stdout
    steps = json.loads(invoke("plan", path, "--format", "json").stdout)["steps"]
    assert [step["state"] for step in steps if step["kind"] == "retrieve"] == ["in the store"]


def test_schema_is_a_draft_7_schema_that_the_spec_satisfies(spec: Path) -> None:
    import yaml

    schema = json.loads(invoke("schema").stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(spec.read_text()), schema)


# metrics


def test_metrics_lists_every_metric_with_what_it_measures() -> None:
    from rageval_spec import registry

    result = invoke("metrics")
    assert result.exit_code == 0
    for word in registry.words("metrics"):
        assert re.search(rf"^{word}  +\S", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", ["ndcg", "ndcg_cut", "ndcg_cut_10", "NDCG@10"])
def test_metrics_show_knows_every_name_of_a_metric(name: str) -> None:
    result = invoke("metrics", "show", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("ndcg: ")
    for heading in ("Formula", "Edge cases", "Keys", "Range", "Source"):
        assert f"\n{heading}\n" in result.stdout


def test_metrics_show_of_an_unknown_name() -> None:
    result = invoke("metrics", "show", "ncdg")
    assert result.exit_code == 2
    assert "did you mean 'ndcg'?" in result.stderr


# init


def test_init_writes_what_runs_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    result = invoke("init", folder)
    assert result.exit_code == 0
    assert f"rageval-spec run {folder / 'spec.yaml'}" in result.stdout
    assert invoke("validate", folder / "spec.yaml").exit_code == 0
    assert invoke("run", folder / "spec.yaml", "-o", tmp_path / "out").exit_code == 0
    assert json.loads((folder / "spec.schema.json").read_text())["$schema"].startswith(
        "http://json-schema.org/draft-07"
    )


def test_init_overwrites_only_by_force(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    result = invoke("init", tmp_path)
    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"
    assert not (tmp_path / "data").exists()
    assert invoke("init", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "spec.yaml").read_text() != "mine"


# score


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


def test_score_of_what_is_wrong(files: tuple[Path, Path], tmp_path: Path) -> None:
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


# The process


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_3(spec: Path) -> None:
    command = f"{sys.executable} -m rageval_spec validate {spec}"
    for target, reason in ((">/dev/full", "cannot be written: No space left on device"), (">&-", "is closed")):
        ended = subprocess.run(["sh", "-c", f"{command} {target}"], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (3, f"rageval-spec: standard output {reason}\n")


def test_numbers_beyond_what_kernels_take_are_refused(spec: Path) -> None:
    result = invoke("run", spec, "--limit", "99999999999999999999")
    assert (result.exit_code, "is not in the range" in result.stderr) == (2, True)
    for key in ("resamples", "permutations"):
        result = invoke("validate", spec, "--set", f"statistics.{key}=100000001")
        assert result.exit_code == 2
        assert key in result.stderr


def test_what_a_run_would_stumble_over_is_said_by_validate(tmp_path: Path) -> None:
    dataset = {"use": "trec", "qrels": "data/qrels/test.tsv", "queries": "data/queries.jsonl"}
    reports = ["csv", {"use": "parquet", "path": "values.csv"}]
    sections: dict[str, Any] = {"datasets": {"bare": dataset}, "systems": {"b": {"use": "bm25"}}, "reports": reports}
    result = invoke("validate", write_spec(tmp_path, **sections, metrics=["11pt_avg"]))
    assert result.exit_code == 2
    assert "bm25 reads the corpus, and the dataset 'bare' has none; give it 'corpus:'" in result.stderr
    assert "this report writes 'values.csv', as does the one on line" in result.stderr
    assert "only `rageval-spec score` and `rageval_spec.evaluate` know it" in result.stderr
    (tmp_path / "data" / "corpus.jsonl").unlink()
    folder = {"bare": {"use": "beir", "path": "data"}}
    result = invoke("validate", write_spec(tmp_path, datasets=folder, systems=sections["systems"]))
    assert "put corpus.jsonl into its folder" in result.stderr


def test_a_reader_that_goes_away_is_no_error(spec: Path, tmp_path: Path) -> None:
    for arguments in (["metrics"], ["schema"], ["run", spec, "-o", tmp_path / "out"], ["plan", spec]):
        with start(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 0
        assert [line for line in errors.splitlines() if not line.startswith("wrote ")] == []


def test_the_verdict_outlives_its_reader(spec: Path, tmp_path: Path) -> None:
    with start("run", spec, "-o", tmp_path / "out", "--set", "gates.0.min=0.99") as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1


SLOW_SYSTEM = """
import sys, time
from rageval_spec import registry
from rageval_spec.cli import main
from tests.tiny import Counting

class Slow(Counting):
    def retrieve(self, collection, runs):
        sys.stdout.write("retrieving\\n")  # one write: two threads do not mix within a line
        sys.stdout.flush()
        for _ in range(600):
            time.sleep(0.1)

load, words = registry.load, registry.words
registry.words = lambda section: (*words(section), "slow") if section == "systems" else words(section)
registry.load = lambda section, word: Slow if word == "slow" else load(section, word)
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="has no SIGINT to send")
@pytest.mark.parametrize("systems", [1, 2])
def test_an_interrupt_ends_with_130_at_once(tmp_path: Path, install: Install, systems: int) -> None:
    from tests.tiny import Counting

    install("systems", "slow", Counting)
    nodes = {f"slow{number}": {"use": "slow", "answer": f"d{number}"} for number in range(systems)}
    path = write_spec(tmp_path, systems=nodes)
    command = [sys.executable, "-c", SLOW_SYSTEM, "run", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "retrieving\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait(timeout=50)
    assert process.returncode == 130
    assert time.monotonic() - started < 40  # and not the minute that the system takes
    assert errors.strip() == "rageval-spec: interrupted"
