import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.drawing.page.page import write_page
from rageval_spec.history.database import FILE
from rageval_spec.history.saved_evaluations import FOLDER, load_record
from tests.answered_evaluation import bridges
from tests.history.records import make_id
from tests.local_view.viewing import Client, make_project, save, viewing


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("project")
    make_project(folder)
    with viewing(folder) as client:
        yield client


def test_the_list_has_all_records_newest_first(client: Client) -> None:
    status, page = client.get("/")
    assert status == 200
    places = [page.index(f"/record/{make_id(number)}/") for number in (3, 2, 1)]
    assert places == sorted(places)
    assert page.count("numbers only") == 1


def test_the_report_is_the_page_that_the_report_html_writes(tmp_path: Path) -> None:
    make_project(tmp_path)
    with viewing(tmp_path) as client:
        status, page = client.get(f"/record/{make_id(1)}/")
    assert status == 200
    static = write_page(load_record(tmp_path / FOLDER / "main").evaluation, 3, None).decode()
    assert page.partition("<main")[2] == static.partition("<main")[2]


def test_trends_are_of_the_newest_evaluation(client: Client) -> None:
    status, page = client.get("/trends")
    assert status == 200
    assert "3 records" in page


@pytest.mark.parametrize("path", ["/record/nothing/", "/nothing", "/?page=x", "/record/x/parts/..%2Fhead.js"])
def test_what_is_not_there_is_said_in_plain_words(client: Client, path: str) -> None:
    status, page = client.get(path)
    assert status == 404
    assert "This page cannot be shown" in page or "There is no" in page


def test_an_empty_history_says_what_to_do(tmp_path: Path) -> None:
    with viewing(tmp_path) as client:
        for path in ("/", "/trends", "/compare"):
            status, page = client.get(path)
            assert status == 200
            assert "rageval-spec run spec.yaml" in page or "Choose two" in page


def test_a_damaged_record_is_told_beside_the_others(tmp_path: Path) -> None:
    make_project(tmp_path)
    save(bridges(), tmp_path / "broken", 9, "broken")
    (tmp_path / "broken" / "results.json").write_text('{"name": "x"')
    (tmp_path / FOLDER / "next" / "values.parquet").write_bytes(b"PAR1")
    with viewing(tmp_path, tmp_path / "broken") as client:
        status, page = client.get("/")
        assert status == 200
        assert "not a whole file of results" in page
        status, page = client.get(f"/record/{make_id(2)}/")
        assert status == 422
        assert "values.parquet" in page


def test_a_damaged_history_is_told(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / FILE).write_bytes(b"not a database at all" * 100)
    with viewing(tmp_path) as client:
        for path in ("/", "/trends"):
            status, page = client.get(path)
            assert status == 200
            assert "history.db" in page
        assert "/label/" in client.get("/")[1]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_project_that_may_not_be_written_is_shown(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "kept").mkdir()
    for path in (tmp_path / ".rageval", tmp_path / FOLDER):
        path.chmod(0o555)
    try:
        with viewing(tmp_path) as client:
            assert client.get("/")[0] == 200
    finally:
        for path in (tmp_path / ".rageval", tmp_path / FOLDER):
            path.chmod(0o755)


def test_the_last_results_are_the_record_that_was_made_with_them(tmp_path: Path) -> None:
    make_project(tmp_path)
    save(bridges(shift=0.1), tmp_path / "rageval-results", 7, "x")
    (tmp_path / "rageval-results" / "record.json").unlink()
    with viewing(tmp_path, tmp_path / "rageval-results") as client:
        page = client.get("/")[1]
        assert page.count('name="record"') == 3
        assert "numbers only" not in page


def test_judging_again_is_not_offered_of_records_without_a_judge(tmp_path: Path) -> None:
    make_project(tmp_path)
    with viewing(tmp_path, spec=tmp_path / "spec.yaml") as client:
        page = client.get("/")[1]
    assert "/label/" in page
    assert "/judge/" not in page
    assert "start the view with its spec" not in page
