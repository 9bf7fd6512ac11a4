"""The review page as a file: its data, its policy, and nothing that could act."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from typing import Any

from rageval_spec.review.page.rendering import BLOCK, render_page, split_sheet
from rageval_spec.review.tasks import to_payload
from tests.review.sheets import ATTACK, HALF, make_sheet

PAGE = render_page(to_payload(make_sheet())).decode()


def parts(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="text/plain" data-part="([^"]+)">([^<]*)</script>', page)
    return {name: json.loads(gzip.decompress(base64.b64decode(text))) for name, text in found}


def test_the_same_sheet_gives_the_same_bytes() -> None:
    assert render_page(to_payload(make_sheet())).decode() == PAGE


def test_the_page_names_no_address_and_only_makes_texts() -> None:
    assert set(re.findall(r"https?://[^\s\"']+", PAGE)) == {"http://www.w3.org/2000/svg"}
    assert " style=" not in PAGE
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", PAGE)
    assert "default-src 'none'; script-src 'sha256-" in html.unescape(PAGE)


def test_texts_are_packed_and_come_back_as_they_were() -> None:
    assert ATTACK not in PAGE
    found = parts(PAGE)
    assert found["head"]["tasks"][3]["question"] == ATTACK
    assert found["tasks-0"][3]["answer"] == ATTACK
    assert found["tasks-0"][2]["answer"].endswith(HALF)


def test_the_list_of_tasks_comes_first_and_their_texts_in_blocks() -> None:
    sheet = make_sheet(2 * BLOCK + 1)
    found = dict(split_sheet(to_payload(sheet)))
    assert [*found] == ["head", "tasks-0", "tasks-1", "tasks-2"]
    assert [len(found[name]) for name in [*found][1:]] == [BLOCK, BLOCK, 1]
    assert len(found["head"]["tasks"]) == 2 * BLOCK + 1
    assert "answer" not in found["head"]["tasks"][0]
    assert found["head"]["digest"] == sheet.digest


def test_a_task_lists_what_is_asked_about_it() -> None:
    head = dict(split_sheet(to_payload(make_sheet())))["head"]
    assert head["tasks"][0]["slots"] == [(0, 0), (0, 1), (0, 2), (1, None), (2, None)]
    assert head["tasks"][1]["slots"] == [(1, None), (2, None)]
