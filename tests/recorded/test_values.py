from __future__ import annotations

import gc
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.recorded import values


def test_numbers_counts_and_texts() -> None:
    numbers: list[Any] = ["0.5", 1, True, math.nan, "inf", [], None, 10**400]
    assert [values.read_number(one) for one in numbers] == [0.5, 1.0, *[None] * 6]
    assert [values.read_count(one) for one in (3, "4", -1, 2.0, 2.5, True)] == [3, 4, None, 2, None, None]
    mixed: list[Any] = ["a", "", 7, True, {}]
    assert [values.read_text(one) for one in mixed] == ["a", None, "7", None, None]


def test_text_stays_text_and_the_rest_becomes_json() -> None:
    found: list[Any] = ["é", {"é": math.nan}, [], {}, None, 0, ""]
    assert [values.dump_text(one) for one in found] == ["é", '{"é": null}', None, None, None, "0", None]


def test_what_is_no_json_becomes_json() -> None:
    found = {"n": float("nan"), 1: [b"\x01", float("inf"), 2.5], "none": None}
    assert values.clean(found) == {"n": None, "1": ["01", None, 2.5], "none": None}
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert "list more than 32 levels deep" in str(values.clean(deep))


def test_halves_of_surrogate_pairs_become_a_mark_and_whole_pairs_their_character() -> None:
    assert values.clean_text("a\ud800b") == "a\ufffdb"
    assert values.clean_text("\ud83d\ude00é") == "😀é" and values.clean_text("é") == "é"


def test_times_are_in_utc() -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for text in ("2026-03-01T12:00:00Z", "2026-03-01 12:00:00", "2026-03-01T13:00:00+01:00"):
        assert values.read_time(text) == moment
    assert values.read_time("soon") is values.read_time(5) is None
    assert values.write_time(moment) == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("plain", "plain"), ("[1", "[1"), ("{}", {}), ('"quoted"', "quoted"), ("5", "5"), ("{'a': None}", {"a": None}),
        ("['a', 'b']", ["a", "b"]), ("('user', 'Why?')", ["user", "Why?"]),
        ("Note(text='a', n=-1)", {"_class": "Note", "text": "a", "n": -1}),
        ("a.b.Note(text='it\\'s (so)')", "a.b.Note(text='it\\'s (so)')"),
        ("Note(kind=<Kind.A: 'a'>, of=<x.Y object at 0x7f>)", {"_class": "Note", "kind": "a", "of": None}),
        ("Note(text='<Kind.A: 1>')", {"_class": "Note", "text": "<Kind.A: 1>"}),
        ("text='a b=1' n=2 m={'k': 'v w=3'}", {"_class": "Fields", "text": "a b=1", "n": 2, "m": {"k": "v w=3"}}),
        ("<Note(text='a')>", {"_class": "Note", "text": "a"}),
        ("Note(at=datetime.datetime(2026, 1, 1), id=UUID('7'))",
         {"_class": "Note", "at": {"_class": "datetime", "args": [2026, 1, 1]},
          "id": {"_class": "UUID", "args": ["7"]}}),
        ("Note(of=defaultdict({'a': 1}))", {"_class": "Note", "of": {"a": 1}}),
        ("Note(text=a + b)", "Note(text=a + b)"),
    ],
)  # fmt: skip
def test_json_and_printed_objects_are_opened(text: str, opened: Any) -> None:
    assert values.open_text(text) == opened


@pytest.mark.parametrize(
    "text",
    [
        "Why?", "So (it = 1).", "x = 1", "[see](https://example.org)", "(1) first (2) second", "<p>an object</p>",
        "[1] says so", "Note(s): yes", "f(x) = 2x", "Point(x=1) is a call", "a='b' is written so", "<b>So</b>", "[a]",
        "(1994, 1995)", "Wow!", "Yes (see 'a').", "<https://example.org>", "I", "",
    ],
)  # fmt: skip
def test_what_people_write_is_no_dump(text: str) -> None:
    assert values.open_text(text) == text
    assert not values.is_dump(text) and not values.is_printed(text) and not values.is_opaque(text)


@pytest.mark.parametrize(
    "text",
    [
        "<generator object f at 0x7f00>", "<generator object>", "<async_generator object a.b at 0x7F>",
        "<Response [200]>",         "<bound method A.f of <a.A object at 0x7f00>>", "<class 'a.B'>",
        "Document(id=abc, content: 'text...', score: 0.5)",
        "StartEvent()", "[Note(text='a'), Note(text='b')]", "text='a' n=1",
    ],
)  # fmt: skip
def test_what_python_prints_is_a_dump(text: str) -> None:
    assert values.is_dump(text) and values.is_printed(text)


@given(st.text(st.sampled_from("[](){}<>='\"\\,: aAN01.x-")))
def test_any_text_is_opened_or_stays(text: str) -> None:
    opened = values.open_text(text)
    assert opened == text or isinstance(opened, dict | list | str)
    json.dumps(values.clean(opened))
    values.is_dump(text), values.is_printed(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_printed_lists_and_mappings_are_what_they_were(found: Any) -> None:
    if isinstance(found, dict | list) and found:
        assert values.open_text(repr(found)) == found


@pytest.mark.parametrize("text", ["a='b'" + " " * 150_000, "[" + "'" * 150_000, "A(x=" + "<" * 150_000, "[" * 150_000])
def test_texts_that_are_long_and_broken_are_refused_at_once(text: str) -> None:
    assert values.open_text(text) in (text, {"_class": "Fields", "a": "b"})


class _Cycle:
    """Something that only the collector of garbage ends, with a method of Python, so that threads change inside it."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


def test_several_threads_read_printed_objects_at_once() -> None:
    printed = f"[{', '.join(f'Document(text={number!r}, tags=[1, (2, {number})])' for number in range(60))}]"
    expected = values.open_text(printed)

    def read(_: int) -> bool:
        _Cycle()
        return bool(values.open_text(printed) == expected)

    usual, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(300)))
    finally:
        gc.set_threshold(*usual)
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ([{"service.version": "1.4.0", "telemetry.sdk.version": "1.30"}], "1.4.0"),
        ([{"version": 2, "release": "r7"}, None, {"release": "r8"}], "r7 r8 2"),
        ([{"release": "r7"}, {"service.version": "r7"}], "r7"),
        ([{"revision_id": "51f7a9b"}], "51f7a9b"),
        ([{"version": {"a": 1}, "release": "", "prompt_version": "3"}, "version", []], None),
        ([], None),
    ],
)
def test_the_version_of_an_application(said: list[Any], version: str | None) -> None:
    assert values.find_version(*said) == version
