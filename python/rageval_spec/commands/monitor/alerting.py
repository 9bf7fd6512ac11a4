"""`monitor alerts`, `monitor silence` and `monitor test-notify`: what is wrong now, and who is told of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.data.alerts import AlertMessage, write_moment
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.drawing.alert_text import format_time
from rageval_spec.errors import BROKEN, PASSED, RagevalError, UsageError
from rageval_spec.progress import name_seconds
from rageval_spec.wording import count_noun, read_duration

if TYPE_CHECKING:
    from rageval_spec.monitoring.alerts import AlertBook, TellingRow
    from rageval_spec.plugin import Notifier


@click.command("alerts")
@shared.spec_argument
@shared.form_option
def show_alerts(spec: Path, overrides: Iterable[str], form: str) -> int:
    """Show the alerts that fire.

    Shows since when each alert fires, who was notified, and what could not be delivered,
    and which alerts wait for data.

    \b
    rageval-spec monitor alerts spec.yaml
    """
    from rageval_spec.monitoring.alerts import AlertBook
    from rageval_spec.monitoring.assembly import open_ledger
    from rageval_spec.plugin import NotifierNode
    from rageval_spec.spec import load

    found = load(spec, overrides=list(overrides))
    with open_ledger(found) as ledger:
        book, now = AlertBook(ledger.connection, found.name), time.time()
        shown = list(_list_alerts(book))
        silences = book.list_silences(now)
        names = {node.name or node.use for node in found.notifiers if isinstance(node, NotifierNode)}
        if form == "json":
            told = {"alerts": [_export(*one) for one in shown],
                    "waiting": [{"name": name, "reason": reason} for name, reason in book.list_waiting()],
                    "silences": [{"pattern": pattern, "until": write_moment(until), "reason": reason}
                                 for pattern, until, reason in silences]}  # fmt: skip
            console.show(dump_visible(told))
            return PASSED
        for message, rows in shown:
            console.show("".join(f"{line}\n" for line in _describe(message, rows, names, now, book)))
        if not any(message.state == "firing" for message, _ in shown):
            console.show("No alert fires.\n")
        for name, missing in book.list_waiting():
            console.show(f"{make_visible(name)}: not decided: {make_visible(missing)}\n")
        for pattern, until, reason in silences:
            told_of = f": {make_visible(reason)}" if reason else ""
            console.show(f"Silenced until {format_time(until)}: {make_visible(pattern)}{told_of}\n")
    return PASSED


def _list_alerts(book: AlertBook) -> Iterator[tuple[AlertMessage, list[TellingRow]]]:
    """The alerts that fire or wait to, and those of whose end somebody is still to be told; with who is told."""
    from rageval_spec.monitoring.alerts import load_message

    current = {}
    for row in book.read():
        if row.message is not None and row.state in ("firing", "pending"):
            one = load_message(row.message)
            severity = row.severity or one.severity
            current[one.key] = replace(one, state="firing" if row.state == "firing" else "pending", severity=severity)
    for key in dict.fromkeys([*current, *(row.message_key for row in book.list_undelivered())]):
        rows = book.list_messages(key)
        yield current.get(key) or load_message(rows[-1].message), rows


def _describe(
    message: AlertMessage, rows: Iterable[TellingRow], names: set[str], now: float, book: AlertBook
) -> Iterator[str]:
    since = format_time(message.began)
    ages = {
        "firing": f"{message.severity}, fires since {since} ({name_seconds(now - message.began)})",
        "pending": f"{message.severity}, pending since {since}: it has not held long enough to fire",
        "resolved": f"resolved {format_time(message.ended or now)}",
    }
    yield f"{make_visible(message.name)}: {ages[message.state]}"
    if message.summary:
        yield f"  {make_visible(message.summary)}"
    for part, why in message.moved.items():
        yield f"  moved: {part}: {make_visible(why)}"
    rows = list(rows)
    if message.state == "firing" and not rows:
        is_silenced = book.is_silenced(message, now)
        why = "a silence covers it" if is_silenced else "its 'notify:' is empty, or its silence has just ended"
        yield f"  nobody was told: {why if names else 'the spec has no notifier'}"
    for row in rows:
        what = f"{make_visible(row.notifier)}: {'its end' if row.state == 'resolved' else row.severity}"
        if row.sent is not None:
            yield f"  {what}: told {format_time(row.sent)}"
        elif row.notifier not in names:
            yield f"  {what}: not told, because the spec has no such notifier any more"
        else:
            why = f", after {count_noun(row.tries, 'try', 'tries')}: {make_visible(row.reason)}" if row.reason else ""
            again = f"; again at {format_time(row.retry_at)}" if row.retry_at is not None and row.tries else ""
            yield f"  {what}: not told yet{why}{again}"


def _export(message: AlertMessage, rows: Iterable[TellingRow]) -> dict[str, Any]:
    from rageval_spec.data.alerts import export_alerts

    (alert,) = export_alerts([message])["alerts"]
    told = [
        {"notifier": row.notifier, "state": row.state, "severity": row.severity, "tries": row.tries,
         "told": None if row.sent is None else write_moment(row.sent), "reason": row.reason}
        for row in rows
    ]  # fmt: skip
    return {**alert, "notifiers": told}


@click.command("silence")
@click.argument("spec", type=click.Path(path_type=Path))
@click.argument("pattern")
@shared.set_option
@click.option(
    "--for", "length", required=True, metavar="DURATION", help="How long to silence the alerts: 2h. 0s ends a silence."
)
@click.option("--reason", metavar="TEXT", help="Why. `monitor alerts` shows it.")
def silence_alerts(spec: Path, pattern: str, overrides: Iterable[str], length: str, reason: str | None) -> int:
    """Stop notifications for some alerts.

    Silences the alerts whose names match PATTERN. Alerts that still fire when the silence ends are sent then.

    \b
    rageval-spec monitor silence spec.yaml 'faithfulness*' --for 2h --reason 'new index'
    """
    from rageval_spec.monitoring.alerts import AlertBook
    from rageval_spec.monitoring.assembly import open_ledger
    from rageval_spec.spec import load

    seconds = read_duration(length)
    if seconds is None:
        raise UsageError(f"--for {make_visible(length)} is not a duration; write 2h, 30m or 1d")
    found = load(spec, overrides=list(overrides))
    with open_ledger(found) as ledger:
        book, now = AlertBook(ledger.connection, found.name), time.time()
        book.silence(pattern, now + seconds, reason)
        covered = [one.name for one, _ in _list_alerts(book) if fnmatchcase(one.name, pattern)]
    if not seconds:
        console.show(f"{make_visible(pattern)} is silenced no longer\n")
        return PASSED
    console.show(f"Silenced until {format_time(now + seconds)}: {make_visible(pattern)}\n")
    console.show("".join(f"  {make_visible(name)}\n" for name in covered) or "  no alert of this name fires now\n")
    return PASSED


@click.command("test-notify")
@shared.spec_argument
def try_notifiers(spec: Path, overrides: Iterable[str]) -> int:
    """Send a test alert to each notifier.

    Sends a test alert and its end, and reports whether each notifier accepted them.

    \b
    rageval-spec monitor test-notify spec.yaml
    """
    from rageval_spec.monitoring.assembly import open_notifiers, require_monitor
    from rageval_spec.spec import load

    found = load(spec, overrides=list(overrides))
    if not require_monitor(found).notify:
        raise UsageError(
            f"{found.path}: 'monitor:' has no 'notify:'; add one: notify: [{{use: webhook, url: '${{secret:HOOK}}'}}]"
        )
    with open_notifiers(found) as notifiers:
        results = {name: _try(notifier, found.name) for name, notifier in notifiers.items()}
    for name, reason in results.items():
        told = "took a test alert and its end" if reason is None else f"failed: {make_visible(reason)}"
        console.show(f"{make_visible(name)}: {told}\n")
    return BROKEN if any(results.values()) else PASSED


def _try(notifier: Notifier[Any], monitor: str) -> str | None:
    """Why a notifier did not take a test; None if it did."""
    from rageval_spec.monitoring.alerts import explain_failure

    now, labels = time.time(), {"test": "true"}
    key, told = f"test-{int(now * 1000):x}", "This is a test. Nothing is wrong, and there is nothing to do."
    message = AlertMessage(key, monitor, "test of alerts", "firing", "warning", told, now, labels=labels)
    try:
        notifier.send([message])
        notifier.send([replace(message, state="resolved", ended=time.time(), summary="The test is over.")])
    except RagevalError as error:
        return explain_failure(error, notifier)
    return None
