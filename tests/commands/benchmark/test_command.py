from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from rageval_spec.commands.benchmark.system_arguments import build_tree, load_spec
from rageval_spec.spec import load
from tests import command_line
from tests.embedded import require
from tests.tiny import Failing, Install, install, write_collection

__all__ = ["install"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which contains the BEIR folders `fruit` and `salad`."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name in ("fruit", "salad"):
        write_collection(tmp_path / "written").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


TIED = ("--set", "systems.file.path=fruit/tied.run")
FAST = ("--set", "statistics.resamples=200", "--set", "statistics.permutations=200")


def invoke(*arguments: str | Path, env: dict[str, str] | None = None) -> Result:
    return command_line.invoke("benchmark", *arguments, *FAST, env=env)


def row(text: str, system: str, number: int = 0) -> str:
    """The cells of a system's row in a table, separated by one space."""
    lines = [line for line in text.splitlines() if line.startswith(f"{system} ")]
    return " ".join(lines[number].removeprefix(system).split())


@pytest.mark.usefixtures("folder")
def test_the_command_prints_the_tables_and_exits_with_0() -> None:
    result = invoke("fruit", "salad", "--system", "bm25", "--system", "file", *TIED, "--metric", "rr")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.fullmatch(
        r"(0\.625 ∅ \[0\.\d{3}, 0\.\d{3}\] ?){2}0\.625 \[0\.\d{3}, 0\.\d{3}\]", row(result.stdout, "file")
    )
    assert "∅       unresolvable: 4 pairs cannot show a difference" in result.stdout
    assert row(result.stdout, "system") == "fruit salad average"
    assert row(result.stdout, "file", 1).endswith(" s")


@pytest.mark.usefixtures("folder")
def test_a_failed_system_exits_with_3_and_the_others_are_shown(install: Install) -> None:
    install("systems", "failing", Failing)
    result = invoke("fruit", "salad", "--system", "bm25", "--system", "failing", "--metric", "rr")
    assert result.exit_code == 3
    assert row(result.stdout, "failing") == "error error –"
    assert "error failing on fruit, salad: ConnectionError: nobody at the other end\n" in result.stdout
    assert "was not compared" not in result.stdout
    assert result.stderr == "rageval-spec: 2 evaluations of a system failed; the others are complete\n"
    shown = invoke("fruit", "--system", "bm25", "--system", "failing", "--format", "csv")
    assert "rageval-spec: failing on fruit: ConnectionError: nobody at the other end\n" in shown.stderr
    assert invoke("fruit", "--system", "failing").exit_code == 4


@pytest.mark.usefixtures("folder")
def test_a_wrong_command_line_exits_with_2_and_every_diagnostic() -> None:
    result = invoke("fruit", "--system", "bm26", "--system", "dense:miniml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "--system:1:1: unknown system 'bm26'; did you mean 'bm25'? [invalid-argument]\n  bm26\n  ^^^^\n"
        "--system:2:7: there is no model 'miniml'; did you mean 'minilm'?"
        " [invalid-argument]\n  dense:miniml\n        ^^^^^^\n"
    )
    result = invoke("fruti", "--system", "bm25")
    assert "DATASET:1:1: there is no folder 'fruti'; did you mean 'fruit'?" in result.stderr
    result = invoke()
    assert (result.exit_code, "DATASET is missing" in result.stderr) == (2, True)


def test_spec_prints_the_equivalent_spec(folder: Path) -> None:
    arguments = ("fruit", "salad", "--system", "bm25", "--set", "systems.bm25.k1=0.9", "--metric", "rr")
    text = invoke(*arguments, "--spec").stdout
    (folder / "spec.yaml").write_text(text)
    spec = load(folder / "spec.yaml")
    overrides = ["systems.bm25.k1=0.9", FAST[1], FAST[3]]
    assert spec.digest == load_spec(build_tree(("fruit", "salad"), ("bm25",), ("rr",)), overrides).digest
    assert not (folder / ".rageval").exists()
    report = json.loads(invoke(*arguments, "--format", "json").stdout)
    assert report["evaluation"]["spec_digest"] == spec.digest


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.usefixtures("folder")
def test_what_other_programs_read_is_alone_on_standard_output(install: Install, form: str) -> None:
    install("systems", "failing", Failing)
    result = invoke("fruit", "--system", "bm25", "--system", "failing", "--format", form, "-o", "out")
    assert result.exit_code == 3
    assert "wrote out" in result.stderr
    assert "rageval-spec: failing on fruit: ConnectionError: nobody at the other end\n" in result.stderr
    if form == "json":
        assert {cell["system"] for cell in json.loads(result.stdout)["evaluation"]["aggregates"]} == {"bm25", "failing"}
    else:
        rows = [*csv.DictReader(result.stdout.splitlines())]
        assert {found["system"] for found in rows} >= {"bm25"}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.usefixtures("folder")
def test_a_traceback_is_shown_where_it_is_asked_for(install: Install, form: str) -> None:
    install("systems", "failing", Failing)
    arguments = ("fruit", "--system", "bm25", "--system", "failing", "--format", form)
    assert "Traceback" not in invoke(*arguments).output
    shown = invoke(*arguments, env={"RAGEVAL_DEBUG": "1"})
    assert shown.stderr.count("Traceback (most recent call last)") == 1
    assert "Traceback" not in shown.stdout


@pytest.mark.usefixtures("folder")
def test_warnings_of_the_spec_come_first_and_change_no_exit_code() -> None:
    result = invoke("fruit", "--system", "bm25", "--set", "ranking.tie_range=no")
    assert result.exit_code == 0
    assert result.stderr.startswith("--set:")
    assert "warning: YAML 1.2" in result.stderr


@pytest.mark.usefixtures("folder")
def test_a_second_run_takes_the_rankings_from_the_store_and_says_the_same() -> None:
    first, second = (json.loads(invoke("fruit", "--system", "bm25", "--format", "json").stdout) for _ in range(2))
    assert [[timing["stored"] for timing in found["timings"]] for found in (first, second)] == [[False], [True]]
    assert first["evaluation"] == second["evaluation"]


def test_output_writes_the_files_of_a_benchmark(folder: Path) -> None:
    result = invoke("fruit", "--system", "bm25", "--format", "csv", "-o", "out", "--store", "kept", "--limit", "2")
    assert result.exit_code == 0
    names = {"benchmark.md", "benchmark.json", "benchmark.csv", "values.csv", "results.json", "values.parquet"}
    assert {path.name for path in (folder / "out").iterdir()} == names | {"manifest.json", "statement.json"}
    assert (folder / "out" / "benchmark.csv").read_bytes() == result.stdout_bytes
    assert {line.rpartition("/")[2] for line in result.stderr.splitlines()} == names
    assert (folder / "kept").is_dir() and not (folder / ".rageval").exists()
    assert result.stdout.splitlines()[1].split(",")[6:8] == ["2", "2"]


def test_no_store_keeps_nothing(folder: Path) -> None:
    assert invoke("fruit", "--system", "bm25", "--no-store").exit_code == 0
    assert not (folder / ".rageval").exists()


def test_the_embedded_model_on_a_real_collection(shared_data: Path, folder: Path) -> None:
    require("minilm")
    adi = shared_data / "retrieval" / "adi"
    first, second = (json.loads(invoke(adi, "--limit", "10", "--format", "json").stdout) for _ in range(2))
    assert first["evaluation"]["failures"] == []
    assert first["evaluation"]["systems"] == ["bm25", "dense-minilm", "hybrid"]
    assert first["evaluation"]["models"]["minilm"]["use"] == "onnx"
    assert [timing["stored"] for timing in (*first["timings"], *second["timings"])] == [False] * 3 + [True] * 3
    assert second["evaluation"] == first["evaluation"]
    means = {cell["system"]: cell["mean"] for cell in first["evaluation"]["aggregates"]}
    assert all(0.3 < mean < 0.8 for mean in means.values())
