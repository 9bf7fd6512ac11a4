"""Alerts in a channel, in which the texts of answers stay texts."""

import json

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.plugin.secrets import Secret
from tests.notifiers.receivers import FIRING, RESOLVED, receive, send


def post(*messages: AlertMessage) -> dict[str, object]:
    with receive() as got:
        send("slack", {"url": Secret(got.url)}, messages)
    content: dict[str, object] = got.requests[0][2]
    return content


def test_a_message_has_the_title_the_facts_and_the_worst_answers() -> None:
    content = post(FIRING)
    assert content["text"] == "bot: faithfulness below 0.7 (critical)"
    told = json.dumps(content["blocks"])
    for part in ("it fell to 0.5", "0.500 [0.400, 0.600]", "60 judged traces", "version 2 answers", "watch.example"):
        assert part in told


def test_answers_mention_nobody_and_link_nowhere() -> None:
    def walk(found: object) -> list[dict[str, object]]:
        inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
        own = [found] if isinstance(found, dict) and "text" in found and isinstance(found["text"], str) else []
        return own + [one for value in inner for one in walk(value)]

    content = post(FIRING)
    assert {one["type"] for one in walk(content["blocks"])} == {"plain_text"}
    assert "\x1b" not in json.dumps(content, ensure_ascii=False)
    title = post(AlertMessage("k", "bot", "<!channel> fell", "firing", "low", "", 0.0))
    assert title["text"] == "bot: &lt;!channel&gt; fell (low)"


def test_a_group_is_one_message() -> None:
    content = post(FIRING, FIRING, FIRING)
    assert content["text"] == "bot: 3 alerts"
    assert post(RESOLVED)["text"] == "bot: faithfulness below 0.7 (resolved)"


def test_long_groups_stay_within_the_limits_of_slack() -> None:
    blocks = post(*[FIRING] * 40)["blocks"]
    assert isinstance(blocks, list)
    assert len(blocks) <= 50
