"""What people read of an alert, wherever they read it."""

import pytest

from rageval_spec.data.alerts import WorstAnswer
from rageval_spec.drawing.alert_text import find_link, list_facts, write_html, write_text, write_title
from rageval_spec.drawing.card_view import shorten
from tests.notifiers.alert_messages import HOSTILE, make_end, make_message


def test_the_whole_text() -> None:
    assert write_text([make_message()]) == (
        "CRITICAL: faithfulness below 0.700\n"
        "faithfulness is 0.612 [0.551, 0.673] of 60 judged traces, below 0.700, in the last hour\n"
        "  Value: 0.612 [0.551, 0.673] (95% interval)\n"
        "  Bound: 0.700\n"
        "  Traces: 60\n"
        "  Window: hour\n"
        "  Metric: faithfulness\n"
        "  System: live\n"
        "  Since: 2025-11-24 16:00:00 UTC\n"
        "  Moved: model: its replies are half as long as last week\n"
        "  Worst answer 1 (0.000, trace t1)\n"
        "    Question: Who wrote it?\n"
        r"    Answer: <!channel> @here *bold* <https://evil.example|click> \x1b[31m\u202e & <b>hi</b>" + "\n"
        "    Reason: not supported\n"
        "    Trace: https://traces.example/t1\n"
        "  Page: https://watch.example/bot.html\n"
    )


def test_what_is_not_known_is_left_out() -> None:
    bare = make_message(
        value=None, interval=None, bound=None, samples=None, window=None, metric=None, system=None, moved={}
    )
    assert list(list_facts(bare)) == [("Since", "2025-11-24 16:00:00 UTC")]
    assert dict(list_facts(make_message(value=0.0, interval=None)))["Value"] == "0.000"


def test_an_end_says_when_and_after_how_long() -> None:
    assert dict(list_facts(make_end()))["Until"] == "2025-11-24 16:25:00 UTC (25 min)"
    assert write_title([make_end()]) == "[support-bot] resolved: faithfulness below 0.700"
    assert write_title([make_end("a"), make_end("b")]).startswith("[support-bot] 2 alerts are over: ")


def test_long_and_hostile_texts_stay_short_and_visible() -> None:
    worst = (WorstAnswer("t1", "x" * 10_000, "a\r\nb\x00" * 1000, None),)
    text = write_text([make_message(name=f"a\nb {HOSTILE}", worst=worst)])
    assert max(map(len, text.splitlines())) < 700
    assert not {"\x1b", "\u202e", "\x00", "\r"} & set(text)
    assert shorten("a \n b" * 100, 10) == "a ba ba ba…"


def test_html_fetches_nothing_and_runs_nothing() -> None:
    page = write_html([make_message(name=HOSTILE, summary="<script>alert(1)</script>", page="javascript:alert(1)")])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert 'href="javascript' not in page
    assert "src=" not in page


def test_more_alerts_than_fit_are_named() -> None:
    messages = [make_message(str(i), name=f"alert {i}") for i in range(12)]
    for text in (write_text(messages), write_html(messages)):
        assert "And 2 more alerts: alert 10, alert 11" in text


@pytest.mark.parametrize(
    ("address", "found"),
    [("https://a.example/x?y=1#z", True), ("http://[::1]:80/", True), ("http://[", False), ("https://", False),
     ("file:///x", False), ("https://a.example/>x", False), ("https://a.example/\n", False), (None, False)],
)  # fmt: skip
def test_links(address: str | None, found: bool) -> None:
    assert find_link(address) == (address if found else None)
