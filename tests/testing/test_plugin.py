from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rageval_spec
from tests.tiny import write_spec

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[2]
MODULE = "rageval_spec.testing.plugin"
GATES = [{"metric": "rr", "min": 0.1}, {"metric": "rr", "system": "good", "min": 0.6}]


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import everything: a session inside this process forgets what it imported, and polars can be loaded only once."""
    rageval_spec.run(write_spec(tmp_path_factory.mktemp("loaded"), gates=GATES))


def start(pytester: pytest.Pytester, *arguments: str | Path, apart: bool = False) -> pytest.RunResult:
    """Run pytest with the plugin; `apart` for a process of its own, which has to import everything again."""
    installed = {one.value for one in importlib.metadata.entry_points(group="pytest11")}
    loaded = () if MODULE in installed else ("-p", MODULE)
    run = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
    return run("-p", "no:cacheprovider", *loaded, *arguments)


def test_the_package_declares_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"rageval_spec": MODULE}


def test_loading_it_imports_nothing_but_itself() -> None:
    """It is loaded in every session, also in those that have nothing to do with evaluations."""
    code = (
        "import sys, pytest; before = {*sys.modules}; import rageval_spec.testing.plugin;"
        "print(*sorted({*sys.modules} - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["rageval_spec", "rageval_spec.testing", MODULE]


def test_pytest_rewrites_no_module_of_the_package() -> None:
    """Two threads that rewrite modules at once raise SystemError in Python 3.11."""
    from rageval_spec.judging import mentions

    assert type(mentions.__loader__).__name__ == "SourceFileLoader"


def test_a_session_without_specs_imports_nothing_more(pytester: pytest.Pytester) -> None:
    (pytester.path / "specs").mkdir()
    write_spec(pytester.path / "specs")
    pytester.makepyfile(
        "import sys\ndef test_it(): assert not {'polars', 'rageval_spec.spec', 'rageval_spec.runner'} & {*sys.modules}"
    )
    result = start(pytester, apart=True)
    result.assert_outcomes(passed=1)


def test_a_named_spec_is_a_test_for_the_evaluation_and_one_for_each_gate(pytester: pytest.Pytester) -> None:
    result = start(pytester, "-v", write_spec(pytester.path, gates=GATES))
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["spec.yaml::evaluation PASSED*", "spec.yaml::rr ≥ 0.1 PASSED*", "spec.yaml::rr good ≥ 0.6 FAILED*"]
    )


def test_a_failed_gate_shows_its_reason_and_the_worst_question_and_no_traceback(pytester: pytest.Pytester) -> None:
    result = start(pytester, write_spec(pytester.path, gates=GATES))
    text = result.stdout.str()
    result.stdout.fnmatch_lines(["rr of good is 0.500, below the minimum 0.600", "*q4*good*fruit*", "*black cherry*"])
    assert "Traceback" not in text
    assert "spec_collection.py" not in text


def test_a_gate_can_be_chosen(pytester: pytest.Pytester) -> None:
    path = write_spec(pytester.path, gates=GATES)
    start(pytester, "-k", "good", path).assert_outcomes(failed=1, deselected=2)
    start(pytester, f"{path}::rr ≥ 0.1").assert_outcomes(passed=1)


def test_a_wrong_spec_is_an_error_with_every_diagnostic(pytester: pytest.Pytester) -> None:
    result = start(pytester, write_spec(pytester.path, metrics=["ncdg@10"], limits={"thread": 1}))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    assert "did you mean 'ndcg@10'?" in text
    assert "did you mean 'threads'?" in text
    assert "Traceback" not in text


def test_data_that_cannot_be_read_fail_every_test(pytester: pytest.Pytester) -> None:
    path = write_spec(pytester.path, gates=GATES)
    (pytester.path / "data" / "qrels" / "test.tsv").write_text("nonsense\n")
    result = start(pytester, path)
    result.assert_outcomes(failed=3)
    assert "test.tsv" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_an_inconclusive_gate_is_skipped_with_its_reason(pytester: pytest.Pytester) -> None:
    gate = {"metric": "rr", "system": "good", "min": 0.5, "decide": "certain"}
    result = start(pytester, "-rs", write_spec(pytester.path, gates=[gate]))
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*inconclusive: *rr of good*"])


def test_the_setting_names_specs_for_a_session_without_paths(pytester: pytest.Pytester) -> None:
    (pytester.path / "evals").mkdir()
    path = write_spec(pytester.path / "evals", gates=GATES[:1])
    pytester.makepyfile("def test_it(): pass")
    pytester.makeini("[pytest]\nrageval_specs = evals/*.yaml\n")
    start(pytester).assert_outcomes(passed=3)
    start(pytester, "test_the_setting_names_specs_for_a_session_without_paths.py").assert_outcomes(passed=1)
    start(pytester, path).assert_outcomes(passed=2)


def test_the_setting_works_beside_testpaths(pytester: pytest.Pytester) -> None:
    for name in ("evals", "tests"):
        (pytester.path / name).mkdir()
    write_spec(pytester.path / "evals", gates=GATES[:1])
    (pytester.path / "tests" / "test_one.py").write_text("def test_it(): pass\n")
    pytester.makeini("[pytest]\nrageval_specs = evals/*.yaml\ntestpaths = tests\n")
    start(pytester).assert_outcomes(passed=3)
    start(pytester, "tests").assert_outcomes(passed=1)


def test_the_setting_works_in_the_processes_of_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    (pytester.path / "evals").mkdir()
    write_spec(pytester.path / "evals", gates=GATES[:1])
    pytester.makepyfile("def test_it(): pass")
    pytester.makeini("[pytest]\nrageval_specs = evals/*.yaml\n")
    start(pytester, "-n", "1", apart=True).assert_outcomes(passed=3)


def test_a_setting_that_matches_nothing_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nrageval_specs = evals/*.yaml\n")
    result = start(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "rageval_specs: no file in" in result.stderr.str()


def test_other_yaml_files_are_left_alone(pytester: pytest.Pytester) -> None:
    path = pytester.path / "compose.yaml"
    path.write_text("services: {}\n")
    result = start(pytester, path)
    result.assert_outcomes()
    assert "not found" in result.stderr.str()


def test_the_limit_is_that_of_run(pytester: pytest.Pytester) -> None:
    path = write_spec(pytester.path, gates=[{"metric": "rr", "system": "good", "min": 0.6}])
    start(pytester, path, "--rageval-limit", "2").assert_outcomes(passed=2)


def test_the_fixture_evaluates_and_asserts(pytester: pytest.Pytester) -> None:
    write_spec(pytester.path, gates=GATES)
    pytester.makepyfile("""
        def test_passes(rageval):
            evaluation = rageval.run("spec.yaml", overrides=["gates=[]"])
            rageval.assert_passes(evaluation)

        def test_fails(rageval):
            rageval.assert_passes(rageval.run("spec.yaml"))
    """)
    result = start(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E*rr of good is 0.500, below the minimum 0.600", "E*black cherry*"])
    assert "fixture.py" not in result.stdout.str()
