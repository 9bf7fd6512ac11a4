"""`slack`: one message for what began together, within Slack's limits, of which no answer can mention anybody."""

import json
from typing import Any

import pytest

from rageval_spec.data.alerts import AlertMessage, WorstAnswer
from rageval_spec.errors import RagevalError
from rageval_spec.plugin.secrets import Secret
from tests.models.endpoint import Answer
from tests.notifiers.alert_messages import HOSTILE, build, make_end, make_message
from tests.notifiers.receivers import refuse_then_take, serving


def post(*messages: AlertMessage) -> Any:
    with serving() as server:
        build("slack", url=server.url).send(messages)
    (asked,) = server.asked
    return asked.content


def list_elements(block: Any) -> list[Any]:
    """The texts and links of a block of rich text."""
    return [element for part in block["elements"] for element in part["elements"]]


def read(content: Any) -> str:
    """What people read of the blocks."""
    return "\n".join(one["text"] for block in content["blocks"] for one in list_elements(block))


def test_people_see_what_they_need() -> None:
    content = post(make_message())
    shown = read(content)
    for told in (
        "Critical in support-bot: faithfulness below 0.700",
        "0.612 [0.551, 0.673] (95% interval)",
        "0.700",
        "60",
        "its replies are half as long as last week",
        "Who wrote it?",
        "not supported",
    ):
        assert told in shown
    links = [one["url"] for block in content["blocks"] for one in list_elements(block) if one["type"] == "link"]
    assert links == ["https://traces.example/t1", "https://watch.example/bot.html"]
    assert content["text"] == "[support-bot] critical: faithfulness below 0.700"


def test_the_end_says_how_long_it_was() -> None:
    shown = read(post(make_end()))
    assert "Resolved in support-bot" in shown
    assert "25 min" in shown


def test_nothing_from_outside_acts_as_markup() -> None:
    """Slack reads nothing in rich text; in `text`, mentions and links need angle brackets."""
    content = post(make_message(name=HOSTILE, summary=HOSTILE, moved={"app": HOSTILE}))
    assert {block["type"] for block in content["blocks"]} == {"rich_text"}
    assert {one["type"] for block in content["blocks"] for one in list_elements(block)} <= {"text", "link"}
    assert "<!channel>" in read(content)
    assert not {"<", ">", "\x1b", "\u202e"} & set(content["text"])
    assert "&lt;!channel&gt;" in content["text"]
    assert not {"\x1b", "\u202e"} & set(read(content))


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://a.example/|x>", "file:///etc/passwd", "not a link"])
def test_only_addresses_of_the_web_become_links(link: str) -> None:
    content = post(make_message(page=link, worst=(WorstAnswer("t1", "?", "!", 0.0, link=link),)))
    assert "link" not in {one["type"] for block in content["blocks"] for one in list_elements(block)}


@pytest.mark.parametrize("count", [1, 2, 3, 10, 60])
def test_it_stays_within_the_limits(count: int) -> None:
    long = "x" * 50_000
    worst = tuple(WorstAnswer(long, long, long, 0.0, long) for _ in range(3))
    messages = [
        make_message(f"k{i}", name=long, summary=long, worst=worst, moved={"app": long, "judge": long})
        for i in range(count)
    ]
    content = post(*messages)
    assert len(content["blocks"]) <= 50
    assert len(json.dumps(content["blocks"], ensure_ascii=False)) < 26_000
    assert len(read(content)) < 13_000
    assert len(content["text"]) <= 4_000
    assert (f"And {count - 10} more alerts." in read(content)) == (count > 10)


def test_alerts_that_began_together_are_one_message() -> None:
    content = post(make_message("a"), make_message("b", name="latency above 5", severity="warning"))
    assert content["text"].startswith("[support-bot] 2 alerts, the worst critical: ")
    assert "latency above 5" in read(content)


def test_what_was_not_taken_is_sent_again() -> None:
    asked = refuse_then_take(lambda url: build("slack", url=url))
    assert len({one.body for one in asked}) == 1


def test_a_failure_says_what_slack_said_and_not_the_address() -> None:
    with serving(Answer(b"no_service", 404)) as server:
        url = Secret(f"{server.url}/services/T0/B0/s3cr3ts3cr3t", "${secret:SLACK}")
        with pytest.raises(RagevalError, match="no_service") as raised:
            build("slack", url=url).send([make_message()])
    assert "s3cr3t" not in str(raised.value)
