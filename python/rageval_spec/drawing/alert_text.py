"""An alert as people read it: in mails, chats and the output of programs.

Questions, answers and names come from outside. They are shortened and made visible here; who puts them into HTML or
another markup escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from rageval_spec.data.alerts import RANKS, AlertMessage
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.card_view import shorten
from rageval_spec.drawing.html_shell import show_text
from rageval_spec.progress import name_seconds
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent

LONGEST_ANSWER = 300
"""Characters of a question, an answer or a reason that are shown."""
MOST_ALERTS = 10
"""Alerts of one message that are shown in full."""


class ShownAnswer(NamedTuple):
    """One of the worst answers, ready to be shown as text. `link` is None if it cannot be opened."""

    head: str
    question: str
    answer: str
    reason: str
    link: str | None


def write_title(messages: Sequence[AlertMessage]) -> str:
    """One line: `[support-bot] critical: faithfulness below 0.700`, or how many alerts there are."""
    first = choose_worst(messages)
    if len(messages) == 1:
        return _clean(f"[{first.monitor}] {name_state(first)}: {first.name}")
    told = f"{len(messages)} alerts are over" if first.state == "resolved" else f"{len(messages)} alerts"
    worst = "" if first.state == "resolved" else f", the worst {first.severity}"
    return _clean(f"[{first.monitor}] {told}{worst}: {', '.join(one.name for one in messages)}")


def choose_worst(messages: Sequence[AlertMessage]) -> AlertMessage:
    """The message with the worst severity; the first one of several."""
    return max(messages, key=lambda one: RANKS[one.severity])


def name_state(message: AlertMessage) -> str:
    """`critical`, or `resolved`."""
    return "resolved" if message.state == "resolved" else message.severity


def list_facts(message: AlertMessage) -> Iterator[tuple[str, str]]:
    """What is known of an alert, each with its label, in the order in which people ask."""
    if message.value is not None:
        sure = message.interval
        interval = "" if sure is None else f" {format_interval(sure)} ({format_percent(sure.confidence, 2)} interval)"
        yield "Value", format_number(message.value) + interval
    if message.bound is not None:
        yield "Bound", format_number(message.bound)
    if message.samples is not None:
        yield "Traces", f"{message.samples:,}"
    for label, text in (("Window", message.window), ("Metric", message.metric), ("System", message.system)):
        if text:
            yield label, _clean(text)
    yield "Since", format_time(message.began)
    if message.ended is not None:
        yield "Until", f"{format_time(message.ended)} ({name_seconds(message.ended - message.began)})"
    for part, reason in message.moved.items():
        yield f"Moved: {part}", _clean(reason)


def list_worst(message: AlertMessage) -> Iterator[ShownAnswer]:
    """The worst answers behind an alert."""
    for one in message.worst:
        value = "" if one.value is None else f"{format_number(one.value)}, "
        question, answer, reason = (
            shorten(text, LONGEST_ANSWER) for text in (one.question, one.answer, one.reason or "")
        )
        yield ShownAnswer(f"{value}trace {shorten(one.trace_id, 100)}", question, answer, reason, find_link(one.link))


def find_link(address: str | None) -> str | None:
    """An address that can be opened in a browser, without characters that end it early; None for any other."""
    if address is None or not address.isprintable() or any(character in address for character in ' "<>|\\^`{}'):
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return address if parts.scheme in ("http", "https") and parts.hostname else None


def write_text(messages: Sequence[AlertMessage]) -> str:
    """The alerts as plain text, with line breaks."""
    return "\n".join(line for one in messages[:MOST_ALERTS] for line in _list_lines(one)) + _tell_more(messages)


def _list_lines(message: AlertMessage) -> Iterator[str]:
    yield f"{name_state(message).upper()}: {_clean(message.name)}"
    yield _clean(message.summary)
    yield from (f"  {label}: {text}" for label, text in list_facts(message))
    yield from (f"  {line}" for line in list_worst_lines(message))
    if message.page:
        yield f"  Page: {_clean(message.page)}"
    yield ""


def list_worst_lines(message: AlertMessage) -> Iterator[str]:
    """The worst answers behind an alert as lines of plain text."""
    for number, one in enumerate(list_worst(message), 1):
        yield f"Worst answer {number} ({one.head})"
        parts = (("Question", one.question), ("Answer", one.answer), ("Reason", one.reason), ("Trace", one.link))
        yield from (f"  {label}: {text}" for label, text in parts if text)


def write_html(messages: Sequence[AlertMessage]) -> str:
    """The alerts as HTML for mails: without a script, a style sheet or anything that is fetched."""
    body = "".join(_draw(one) for one in messages[:MOST_ALERTS]) + f"<p>{show_text(_tell_more(messages))}</p>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{body}</body></html>\n'


def _draw(message: AlertMessage) -> str:
    rows = "".join(
        f'<tr><th scope="row" align="left">{show_text(label)}</th><td>{show_text(text)}</td></tr>'
        for label, text in list_facts(message)
    )
    worst = "".join(
        f"<li>{_link(one.link, one.head)}<br><b>Question:</b> {show_text(one.question)}<br><b>Answer:</b> "
        f"{show_text(one.answer)}{f'<br><b>Reason:</b> {show_text(one.reason)}' if one.reason else ''}</li>"
        for one in list_worst(message)
    )
    title = f"{name_state(message).capitalize()}: {message.name}"
    page = f"<p>{_link(find_link(message.page), message.page)}</p>" if message.page else ""
    return (
        f"<h3>{show_text(title)}</h3><p>{show_text(message.summary)}</p><table>{rows}</table>"
        f"{f'<p>The worst answers:</p><ol>{worst}</ol>' if worst else ''}{page}"
    )


def _link(address: str | None, text: str) -> str:
    shown = show_text(text)
    return shown if address is None else f'<a href="{show_text(address)}">{shown}</a>'


def _tell_more(messages: Sequence[AlertMessage]) -> str:
    more = messages[MOST_ALERTS:]
    return f"And {count_noun(len(more), 'more alert')}: {_clean(', '.join(one.name for one in more))}\n" if more else ""


def format_time(seconds: float) -> str:
    """`2026-03-01 12:00:05 UTC`."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _clean(text: str) -> str:
    return make_visible(" ".join(text.split()))
