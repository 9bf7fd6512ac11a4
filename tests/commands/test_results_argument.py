"""Opening the results that a command is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.commands.results_argument import is_results, open_results
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.saved_evaluations import FOLDER, save_evaluation
from tests.answered_evaluation import bridges, save


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(name: str | None) -> str:
    with pytest.raises(UsageError) as caught:
        open_results(name)
    return str(caught.value)


def test_a_folder_its_json_and_a_label_are_results() -> None:
    save(bridges(), Path("out"))
    save_evaluation(bridges("v2"), "feature/x", FOLDER)
    assert open_results("out").evaluation.systems == ("v1",)
    assert open_results("out/results.json").evaluation.systems == ("v1",)
    assert open_results("feature/x").evaluation.systems == ("v2",)


def test_without_a_name_the_last_results_are_opened() -> None:
    assert complaint(None) == "there are no results in rageval-results; make them with: rageval-spec run spec.yaml"
    save(bridges(), Path("rageval-results"))
    assert open_results().name == "rageval-results"


def test_another_folder_says_how_to_make_results(here: Path) -> None:
    (here / "data").mkdir()
    assert complaint("data") == (
        "data is not a results folder: it has no results.json; make results with: rageval-spec run spec.yaml -o data"
    )


def test_a_spec_says_how_to_run_it(here: Path) -> None:
    (here / "spec.yaml").touch()
    told = "spec.yaml looks like a spec, not results; make its results with: rageval-spec run spec.yaml"
    assert complaint("spec.yaml") == told


def test_an_unknown_name_says_which_labels_there_are() -> None:
    told = "'mian' is neither a results folder nor a label or record of the history; "
    assert complaint("mian") == f"{told}make results with: rageval-spec run spec.yaml"
    save_evaluation(bridges(), "main", FOLDER)
    assert complaint("mian") == f"{told}did you mean 'main'?"
    assert complaint("xyz").endswith("; the labels are main")


@pytest.mark.parametrize("name", ["", "x" * 5000, "a\0b", "~nobody-of-this-name/x"])
def test_impossible_paths_are_no_results(name: str) -> None:
    assert not is_results(name)
    assert "neither a results folder" in complaint(name) or "not a results folder" in complaint(name)


def test_damaged_results_are_an_error_of_the_data(here: Path) -> None:
    (save(bridges(), here / "out") / "results.json").write_text(json.dumps({"format_version": 99}))
    with pytest.raises(DataError, match="format_version is 99"):
        open_results("out")


def test_results_without_values_say_how_to_get_them(here: Path) -> None:
    (save(bridges(), here / "out") / "values.parquet").unlink()
    with pytest.raises(DataError, match=r"out has no values\.parquet, .* run the spec again to write it"):
        open_results("out")


def test_labels_are_found_beside_the_history_that_the_environment_names(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_evaluation(bridges("v2"), "main", here / "evals" / FOLDER)
    assert "neither a results folder nor a label" in complaint("main")
    monkeypatch.setenv("RAGEVAL_HISTORY", "evals/.rageval/history.db")
    assert open_results("main").evaluation.systems == ("v2",)


def test_a_spec_that_is_not_there_is_a_missing_file() -> None:
    assert complaint("nowhere.yaml") == "nowhere.yaml: no such file"
