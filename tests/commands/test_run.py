from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.command_line import invoke, start
from tests.tiny import Failing, Install, write_spec


def test_run_prints_a_table_and_exits_with_0(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert "PASSED" in result.stdout
    assert result.stderr == f"wrote the results to {tmp_path / 'out'}\n"
    assert json.loads((tmp_path / "out" / "results.json").read_bytes())["verdict"] == "pass"


def test_a_failed_gate_exits_with_1(spec: Path, tmp_path: Path) -> None:
    result = invoke("run", spec, "--set", "gates.0.min=0.99", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


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
    assert "rageval-spec: broken on fruit: ConnectionError: nobody at the other end\n" in result.stderr
    assert result.stderr.endswith("1 evaluation of a system failed; the others are complete\n")
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
    assert (result.exit_code, "is not in the range" in result.stderr) == (2, True)
    for key in ("resamples", "permutations"):
        result = invoke("validate", spec, "--set", f"statistics.{key}=100000001")
        assert result.exit_code == 2
        assert key in result.stderr


def test_the_exit_code_stays_the_same_if_the_reader_goes_away(spec: Path, tmp_path: Path) -> None:
    with start("run", spec, "-o", tmp_path / "out", "--set", "gates.0.min=0.99") as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 1
