"""Reads which records a command concerns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rageval_spec.commands.options import read_age
from rageval_spec.errors import UsageError
from rageval_spec.wording import make_visible

if TYPE_CHECKING:
    from rageval_spec.history.database import Chosen, History


def choose(
    name: str | None = None,
    branch: str | None = None,
    since: str | None = None,
    outcome: str | None = None,
    limit: int | None = None,
) -> Chosen:
    """The choice that options of the command line make.

    Raises:
        UsageError: `since` is neither an age such as `90d` nor a date such as `2026-03-01`.
    """
    from rageval_spec.history.database import Chosen

    return Chosen(name, branch, None if since is None else read_moment(since, "--since"), outcome, limit)


def find_id(history: History, name: str) -> str:
    """The id of the record that a name means: a label, an id or its beginning, or `previous`, `branch:`, `commit:`.

    Raises:
        UsageError: there is none.
    """
    from rageval_spec.history.finding import Places, find_newest

    return history.look_up(name) or find_newest(history, name, Places()) or history.find(name)


def read_moment(text: str, option: str) -> datetime:
    """The time that an age (`90d`) or a date (`2026-03-01`, in UTC) means.

    Raises:
        UsageError: it is neither.
    """
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    try:
        return datetime.now(UTC) - timedelta(seconds=read_age(text))
    except (UsageError, OverflowError):
        message = f"{option} {make_visible(text)} is neither an age nor a date; write 90d, 12h or 2026-03-01"
        raise UsageError(message) from None
