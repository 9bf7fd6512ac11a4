"""`slack`: messages in a channel of Slack, by an incoming webhook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage, AlertSeverity
from rageval_spec.drawing.alert_text import MOST_ALERTS, find_link, list_facts, list_worst, name_state, write_title
from rageval_spec.drawing.card_view import shorten
from rageval_spec.notifiers.shared.posting import PostingNode, PostingNotifier, write_json
from rageval_spec.plugin.secrets import Secret
from rageval_spec.wording import count_noun

_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_FACT = 1_000, 300, 150
_MOST_WITH_ANSWERS = 2
"""Slack refuses blocks of more than some 13,000 characters: of more alerts than these, no answers are shown."""
_SIGNS: Mapping[AlertSeverity, str] = {
    "critical": "🔴", "high": "🔴", "warning": "🟠", "medium": "🟠", "low": "🟡",
}  # fmt: skip


class SlackNode(PostingNode):
    """Messages in a channel of Slack."""

    URL_EXAMPLE = "https://hooks.slack.com/services/T000/B000/KEY"
    url: Secret = Field(description="The address of the incoming webhook, as `${secret:SLACK}`: it is a password.")


class Slack(PostingNotifier[SlackNode]):
    """Posts one message for all alerts that began at the same look.

    Names, questions and answers are shown as they are: none can mention people, make a link or change how text looks.
    """

    node_type = SlackNode

    def send(self, messages: Sequence[AlertMessage]) -> None:
        has_answers = len(messages) <= _MOST_WITH_ANSWERS
        blocks = [_block(_draw(one, has_answers=has_answers)) for one in messages[:MOST_ALERTS]]
        if (more := len(messages) - MOST_ALERTS) > 0:
            blocks.append(_block([_section(_text(f"And {count_noun(more, 'more alert')}."))]))
        title = _escape(shorten(write_title(messages), _LONGEST_TITLE))
        self.post(write_json({"text": title, "blocks": blocks, "unfurl_links": False, "unfurl_media": False}))


def _draw(message: AlertMessage, *, has_answers: bool) -> Iterator[dict[str, Any]]:
    """The parts of an alert as rich text, of which Slack reads nothing as markup: no text in it needs escaping."""
    sign = "🟢" if message.state == "resolved" else _SIGNS[message.severity]
    state, name = name_state(message).capitalize(), shorten(message.name, _LONGEST_FACT)
    title = f"{sign} {state} in {shorten(message.monitor, _LONGEST_FACT)}: {name}\n"
    yield _section(_text(title, bold=True), _text(shorten(message.summary, _LONGEST_TEXT) or " "))
    for label, text in list_facts(message):
        yield _section(_text(f"{label}: ", bold=True), _text(shorten(text, _LONGEST_FACT)))
    for one in list_worst(message) if has_answers else ():
        yield _section(_text(one.head) if one.link is None else _link(one.link, one.head))
        told = "\n".join(filter(None, [one.question, one.answer, one.reason]))
        yield {"type": "rich_text_quote", "elements": [_text(told or "(no text)")]}
    if page := find_link(message.page):
        yield _section(_link(page, "Look at the monitor's page"))


def _block(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": list(parts)}


def _section(*elements: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def _text(text: str, *, bold: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"style": {"bold": True}} if bold else {})}


def _link(address: str, text: str) -> dict[str, Any]:
    return {"type": "link", "url": address, "text": text}


def _escape(text: str) -> str:
    """Text for the notification of a message, in which Slack reads mentions and links in angle brackets."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


PLUGIN = Slack
