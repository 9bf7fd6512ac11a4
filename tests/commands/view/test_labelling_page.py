import csv
import json
import os
import signal
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.calibration.judge_quality import measure_judge
from rageval_spec.calibration.labelled_items import join_labels
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import LabelScale
from rageval_spec.local_view import label_file
from rageval_spec.local_view.label_standing import measure_standing
from rageval_spec.reading.label_files import read_label_file
from rageval_spec.review.label_import import set_label
from tests.answered_evaluation import answered, sample, value
from tests.browser import start_browser
from tests.history.records import make_id
from tests.local_view.viewing import Client, enter, save, viewing

QUESTIONS = 40
RECORD = make_id(1)


def make_answers() -> Evaluation:
    """Questions of which the judge likes all but each fourth."""
    names = [f"q{number:02}" for number in range(QUESTIONS)]
    values = [value(one, "faithfulness", 0.1 if at % 4 == 3 else 0.9) for at, one in enumerate(names)]
    return answered(values, [sample(one, contexts=["The bridge is 120 m long."], context_ids=["a"]) for one in names])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(make_answers(), tmp_path / "results", 1, "main")
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with viewing(folder, folder / "results") as client:
        yield client


def list_tasks() -> list[str]:
    """The tasks of the sheet, in its order."""
    from rageval_spec.commands.view.labelling_page import _begin
    from tests.local_view.test_record_catalog import describe

    return [task.id for task in _begin(describe(RECORD), make_answers()).sheet.tasks]


def give(client: Client, task: str, given: str | None, before: str | None = None, **more: Any) -> tuple[int, Any]:
    content = {"annotator": "Ann", "task": task, "criterion": 0, "claim": None, "value": given, "before": before}
    return client.post(f"/label/{RECORD}/save", content | more)


def read(folder: Path) -> list[dict[str, str]]:
    with (folder / "labels.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_label_is_in_the_file_when_the_reply_says_so(client: Client, folder: Path) -> None:
    first, second, *_ = list_tasks()
    assert give(client, first, "yes", comment="=clear") == (200, {"saved": True})
    assert give(client, second, "no") == (200, {"saved": True})
    rows = read(folder)
    assert [row["value"] for row in rows] == ["yes", "no"]
    assert rows[0]["reason"] == "random"
    assert not rows[0]["comment"].startswith("=")
    assert give(client, first, "no", "yes")[0] == 200
    assert give(client, second, None, "no")[0] == 200
    assert [row["value"] for row in read(folder)] == ["no"]
    assert [label.annotator for label in read_label_file(folder / "labels.csv")] == ["Ann"]


def test_two_tabs_do_not_overwrite_one_another(client: Client, folder: Path) -> None:
    task, *_ = list_tasks()
    assert give(client, task, "yes")[0] == 200
    status, told = give(client, task, "no")
    assert (status, told["current"]["value"]) == (409, "yes")
    assert give(client, task, None, "no")[0] == 409
    assert [row["value"] for row in read(folder)] == ["yes"]
    assert give(client, task, "no", annotator="Bob")[0] == 200
    assert len(read(folder)) == 2


def test_labels_that_come_at_once_are_all_kept(client: Client, folder: Path) -> None:
    tasks = list_tasks()
    threads = [threading.Thread(target=give, args=(client, task, "yes")) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(folder)) == QUESTIONS


def test_the_judge_is_hidden_until_the_label_is_given(client: Client) -> None:
    task, *_ = list_tasks()
    page = client.get(f"/label/{RECORD}")[1]
    assert "data-part" in page
    assert client.get(f"/label/{RECORD}/opinion?task={task}&annotator=Ann")[0] == 403
    give(client, task, "yes")
    assert client.get(f"/label/{RECORD}/opinion?task={task}&annotator=Bob")[0] == 403
    status, text = client.get(f"/label/{RECORD}/opinion?task={task}&annotator=Ann")
    assert status == 200
    assert '"faithfulness": 0.' in text


def test_the_numbers_are_those_of_calibrate(client: Client, folder: Path) -> None:
    for at, task in enumerate(list_tasks()):
        give(client, task, "no" if at % 3 == 0 else "yes")
    status, text = client.get(f"/label/{RECORD}/standing")
    assert status == 200
    labels = [*read_label_file(folder / "labels.csv")]
    found = measure_judge(join_labels(make_answers(), labels, "faithfulness"), resamples=400)
    assert f'"mean": "{found.mean.value:.3f}' in text
    assert f"{QUESTIONS} labels" in text
    assert "Enough" in text  # all are labelled, so the mean is known


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"task": "nothing"}, "evaluated again"),
        ({"criterion": 7}, "not asked"),
        ({"value": "perhaps"}, "not on the scale"),
        ({"annotator": "  "}, "who judged"),
        ({"annotator": 3}, "not a text"),
    ],
)
def test_what_is_no_label_is_refused(client: Client, folder: Path, more: dict[str, Any], told: str) -> None:
    task, *_ = list_tasks()
    status, reply = give(client, **{"task": task, "given": "yes", **more})
    assert status in (400, 404)
    assert told in reply["error"]
    assert not (folder / "labels.csv").exists()


def test_a_file_that_is_not_of_labels_stays_as_it_is(client: Client, folder: Path) -> None:
    (folder / "labels.csv").write_text("colour,shape\nred,round\n")
    task, *_ = list_tasks()
    status, reply = give(client, task, "yes")
    assert status == 422
    assert "labels.csv" in reply["error"]
    assert (folder / "labels.csv").read_text() == "colour,shape\nred,round\n"


@pytest.mark.parametrize(("writes", "status"), [(1, 200), (99, 422)])
def test_what_another_program_writes_meanwhile_is_not_lost(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch, writes: int, status: int
) -> None:
    """It writes between reading and renaming: once, which is read again, or each time, so that nothing is saved."""
    first, second, *_ = list_tasks()
    assert give(client, first, "yes")[0] == 200
    own = (folder / "labels.csv").read_text()
    times = iter(range(writes))

    def write_meanwhile(*given: Any) -> Any:
        found = set_label(*given)
        if (time := next(times, None)) is not None:
            (folder / "labels.csv").write_text(own.replace("Ann", f"Bob {time}"))
        return found

    monkeypatch.setattr(label_file, "set_label", write_meanwhile)
    found, told = give(client, second, "no")
    assert found == status, told
    people = [(row["annotator"], row["value"]) for row in read(folder)]
    assert people == ([("Bob 0", "yes"), ("Ann", "no")] if status == 200 else [("Bob 4", "yes")])
    assert status == 200 or "another program keeps writing" in told["error"]
    assert not list(folder.glob(".labels.csv.*.part"))


def test_a_killed_server_loses_no_saved_label(folder: Path) -> None:
    """Killed in the middle of writing again and again, the file always has every label that was called saved."""
    from tests.commands.view.test_command import started

    saved: set[str] = set()
    tasks = list_tasks()
    for turn in range(4):
        with started(folder / "results", "--labels", folder / "labels.csv") as (program, address):
            client = Client(address.partition("/?")[0], address.partition("token=")[2])
            killer = threading.Timer(0.01 + 0.04 * turn, os.kill, (program.pid, signal.SIGKILL))
            for task in tasks:
                if task in saved:
                    continue
                try:
                    assert give(client, task, "yes")[0] in (200, 409)
                except (OSError, HTTPException):  # no connection, or one that ended in the middle of a reply
                    break
                saved.add(task)
                if killer.ident is None:
                    killer.start()
            killer.cancel()
        labelled = read(folder)
        assert all(None not in row and row["value"] == "yes" for row in labelled)
        assert len(labelled) >= len(saved) > turn


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with start_browser() as found:
        yield found


def test_labels_by_keyboard_are_saved_and_move_the_numbers(client: Client, folder: Path, browser: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(10_000)
    seen: list[str] = []
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    enter(page, f"{client.url}/label/{RECORD}")
    page.get_by_label("Your name").fill("Ann")
    page.keyboard.press("Enter")
    page.wait_for_selector("#task-title")
    assert "0.9" not in page.locator("#told").inner_text()
    page.keyboard.press("o")
    assert page.locator(".opinion").count() == 0
    page.keyboard.press("y")
    page.locator(".opinion").wait_for()
    for key in ("n", "y", "y"):
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelectorAll('.opinion').length === 0")
        page.keyboard.press(key)
        page.locator(".opinion").wait_for()
    page.locator("#saved", has_text="Labels are saved in labels.csv").wait_for()
    page.locator("#numbers", has_text="4 labels").wait_for()
    assert [row["value"] for row in read(folder)] == ["yes", "no", "yes", "yes"]
    assert Axe().run(page).violations_count == 0, Axe().run(page).generate_report()
    page.keyboard.press("u")
    page.locator("#numbers", has_text="3 labels").wait_for()
    assert len(read(folder)) == 3
    page.reload()
    page.get_by_role("button", name="Go on as").or_(page.locator("#task-title")).first.wait_for()
    assert seen == []
    context.close()


def test_grades_are_saved_and_put_on_their_scale(folder: Path) -> None:
    first, *_ = list_tasks()
    with viewing(folder, folder / "results", scale="1..5") as client:
        assert give(client, first, "6")[0] == 400
        assert give(client, first, "2")[0] == 200
        assert give(client, first, "4", "2")[0] == 200
        assert [row["value"] for row in read(folder)] == ["4"]
        status, told = client.get(f"/label/{RECORD}/standing")
    assert status == 200
    (label,) = read_label_file(folder / "labels.csv")
    evaluation = make_answers()
    (standing,) = measure_standing(evaluation, [label], {"faithfulness": LabelScale(1, 5)})
    assert json.loads(told)["standings"] == [standing]
    assert join_labels(evaluation, [label], "faithfulness", LabelScale(1, 5)).labelled == (0.75,)
