"""An alert as people read it: a title, a sentence, facts, what moved, and the worst answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.diagnostics import make_visible
from rageval_spec.wording import count_noun, format_interval, format_number

LONGEST = 300
"""The most characters of a question or an answer in a message."""


def name_alerts(messages: Sequence[AlertMessage]) -> str:
    """The title of a group: `live-bot: faithfulness below 0.8 (critical)`, `live-bot: 3 alerts`."""
    first = messages[0]
    if len(messages) == 1:
        state = "resolved" if first.state == "resolved" else first.severity
        return make_visible(f"{first.monitor}: {first.name} ({state})")
    told = "alerts resolved" if first.state == "resolved" else "alerts"
    return make_visible(f"{first.monitor}: {len(messages)} {told}")


def list_facts(message: AlertMessage) -> Iterator[tuple[str, str]]:
    """The facts of an alert as pairs of a word and a text; what is not known is absent."""
    if message.value is not None:
        interval = "" if message.interval is None else f" {format_interval(message.interval)}"
        yield "value", f"{format_number(message.value)}{interval}"
    if message.bound is not None:
        yield "bound", format_number(message.bound)
    if message.samples is not None:
        yield "samples", count_noun(message.samples, "judged trace")
    if message.window is not None:
        yield "window", make_visible(message.window)
    yield "since", format_time(message.began)
    if message.ended is not None:
        yield "until", format_time(message.ended)
    if message.moved:
        yield "moved", make_visible("; ".join(f"{part}: {reason}" for part, reason in message.moved.items()))


def format_time(seconds: float) -> str:
    """`2026-03-01 12:00 UTC`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def write_time(seconds: float) -> str:
    """`2026-03-01T12:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shorten(text: str) -> str:
    """A text on one line, with control characters escaped, cut after `LONGEST` characters."""
    line = make_visible(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def render_alert(message: AlertMessage) -> str:
    """One alert as plain text of several lines."""
    lines = [make_visible(f"{message.name} ({message.state}, {message.severity})")]
    lines += [make_visible(message.summary)] if message.summary else []
    lines += [f"  {word + ':':<9}{told}" for word, told in list_facts(message)]
    for number, one in enumerate(message.worst, 1):
        value = "" if one.value is None else f" ({format_number(one.value)})"
        lines += [f"  worst answer {number}{value}, trace {make_visible(one.trace_id)}",
                  f"    question: {shorten(one.question)}", f"    answer:   {shorten(one.answer)}"]  # fmt: skip
        lines += [f"    reason:   {shorten(one.reason)}"] if one.reason else []
        lines += [f"    {make_visible(one.link)}"] if one.link else []
    return "\n".join([*lines, *([f"  {make_visible(message.page)}"] if message.page else [])])


def render_alerts(messages: Sequence[AlertMessage]) -> str:
    """A group of alerts as plain text."""
    return "\n\n".join(map(render_alert, messages)) + "\n"
