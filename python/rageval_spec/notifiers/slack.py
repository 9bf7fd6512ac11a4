"""`slack`: posts alerts to a channel by an incoming webhook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.drawing.alert_text import list_facts, name_alerts, shorten
from rageval_spec.notifiers.shared.http_notifier import HttpNode, HttpNotifier
from rageval_spec.plugin.secrets import Secret

_MOST_BLOCKS = 50
_LONGEST_TEXT = 3000
_LONGEST_TITLE = 150
"""Slack's limits for a message, a section and a header."""


class SlackNode(HttpNode):
    """Posts alerts to a channel of Slack by an incoming webhook."""

    url: Secret = Field(description="The address of the incoming webhook, as `${secret:SLACK}`: it is a password.")


class Slack(HttpNotifier[SlackNode]):
    """Posts one message for a group of alerts. Texts of answers stay texts: they mention nobody and link nowhere."""

    node_type = SlackNode
    known_as = ("slack_webhook",)

    def send(self, messages: Sequence[AlertMessage]) -> None:
        blocks = [block for one in messages for block in _list_blocks(one)][:_MOST_BLOCKS]
        self.post("", {"text": escape(name_alerts(messages)), "blocks": blocks})


def escape(text: str) -> str:
    """A text of which Slack makes no mention, link or channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _list_blocks(message: AlertMessage) -> Iterator[dict[str, Any]]:
    title = {"type": "plain_text", "text": name_alerts([message])[:_LONGEST_TITLE], "emoji": False}
    yield {"type": "header", "text": title}
    facts = "\n".join(f"{word}: {told}" for word, told in list_facts(message))
    yield _write_section(f"{message.summary}\n{facts}" if message.summary else facts)
    for one in message.worst:
        value = "" if one.value is None else f" ({one.value:.3g})"
        yield _write_section(f"question: {shorten(one.question)}\nanswer{value}: {shorten(one.answer)}")
    if message.page is not None:
        yield _write_section(message.page)


def _write_section(text: str) -> dict[str, Any]:
    """A section of plain text, in which Slack formats nothing."""
    return {"type": "section", "text": {"type": "plain_text", "text": text[:_LONGEST_TEXT], "emoji": False}}


PLUGIN = Slack
