import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.runner import Options, run
from tests.browser import start_browser
from tests.local_view.viewing import Client, enter, viewing
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

SPEC = """\
version: 1
name: bot
datasets: {asked: {use: jsonl, path: answers.jsonl}}
systems: {bot: {use: file, path: answers.jsonl}}
metrics:
  - {use: faithfulness, judge: words}
judges:
  words: {use: overlap}
"""
STRICT = SPEC.replace("{use: overlap}", "{use: overlap, threshold: 0.99}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {
            "query_id": f"q{n}",
            "question": f"Is it {n}?",
            "answer": f"It is the blue house {n}.",
            "contexts": ["The blue house."],
        }
        for n in range(3)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "spec.yaml").write_text(SPEC)
    run(tmp_path / "spec.yaml", Options(output=tmp_path / "rageval-results", no_store=True))
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[Client]:
    with viewing(folder, folder / "rageval-results", spec=folder / "spec.yaml") as client:
        yield client


def find_record(client: Client) -> str:
    return client.get("/")[1].partition('name="record" value="')[2].partition('"')[0]


def act(client: Client, name: str, text: str, **more: Any) -> tuple[int, Any]:
    content = {"text": text, "metric": "faithfulness", "dataset": "asked", "system": "bot", "q": "q1"}
    return client.post(f"/judge/{find_record(client)}/{name}", content | more)


def test_a_question_is_judged_again_by_an_edited_spec(client: Client, folder: Path) -> None:
    status, plan = act(client, "plan", STRICT)
    assert status == 200
    assert plan["told"].startswith("No call")
    assert "+  words: {use: overlap, threshold: 0.99}\n" in plan["diff"]
    status, found = act(client, "run", STRICT, ticket=plan["ticket"])
    assert (status, found["value"]) == (200, "0.000")
    same = act(client, "plan", SPEC)[1]
    assert same["diff"] == ""
    assert float(act(client, "run", SPEC, ticket=same["ticket"])[1]["value"]) > 0
    assert (folder / "spec.yaml").read_text() == SPEC


def test_only_what_was_planned_is_carried_out(client: Client) -> None:
    ticket = act(client, "plan", SPEC)[1]["ticket"]
    for given in (ticket, None, "x"):
        assert act(client, "run", STRICT, ticket=given)[0] == 409


def test_an_edit_is_kept_as_a_diff_beside_the_spec(client: Client, folder: Path) -> None:
    status, kept = act(client, "keep", STRICT)
    assert status == 200
    assert Path(kept["path"]).parent == folder
    assert "threshold: 0.99" in Path(kept["path"]).read_text()
    assert act(client, "keep", SPEC)[0] == 400
    assert (folder / "spec.yaml").read_text() == SPEC


def test_a_wrong_spec_is_told_with_its_place(client: Client) -> None:
    status, told = act(client, "plan", SPEC.replace("overlap}", "overlapp}"))
    assert status == 422
    assert "spec.yaml:8" in told["error"]
    assert act(client, "plan", "- 1")[0] == 422
    assert act(client, "plan", SPEC, metric="nothing")[0] == 422
    assert act(client, "plan", SPEC, q="nothing")[0] in (404, 422)


def test_without_a_spec_the_pages_say_how_to_start(client: Client, folder: Path) -> None:
    assert "/judge/" in client.get("/")[1]
    with viewing(folder, folder / "rageval-results") as client:
        listed = client.get("/")[1]
        assert "start the view with its spec" in listed
        assert "/judge/" not in listed
        status, page = client.get(f"/judge/{find_record(client)}")
    assert status == 422
    assert "rageval-spec view spec.yaml" in page


def test_the_calls_of_an_edited_prompt_are_told_before_one_is_made(client: Client) -> None:
    asked: list[Any] = []

    def reply(_: int, body: dict[str, Any]) -> Answer:
        asked.append(body["messages"][-1]["content"])
        return Answer(completion(json.dumps({"reason": "not at all", "verdict": "no"})))

    server = ChatServer(reply)
    try:
        own = "{use: prompt, model: paid, value: yes_no, template: 'Is it blue? {{ answer }}'}"
        models = f"models: {{paid: {{use: chat, base_url: '{server.url}', model: m, retries: 0}}}}\n"
        text = SPEC.replace("{use: overlap}", own) + models
        status, plan = act(client, "plan", text)
        assert status == 200, plan
        assert "1 call" in plan["told"]
        assert "price is not known" in plan["told"]
        assert asked == []
        status, found = act(client, "run", text, ticket=plan["ticket"])
        assert (status, found["value"]) == (200, "0.000"), found
        assert len(asked) == 1
        assert "Is it blue?" in asked[0]
    finally:
        server.close()


def test_it_works_in_a_browser(client: Client) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with start_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(10_000)
        enter(page, f"{client.url}/judge/{find_record(client)}")
        page.get_by_role("link", name="q1, bot").click()
        page.wait_for_selector("body[data-ready]")
        page.locator("#text").fill(STRICT)
        page.get_by_role("button", name="Count the calls").click()
        page.get_by_role("button", name="Judge again").click()
        page.get_by_role("heading", name="Now").wait_for()
        assert "faithfulness: 0.000" in page.locator("#outcome").inner_text()
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        for path in ("/", "/label"):
            page.goto(client.url + path)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
