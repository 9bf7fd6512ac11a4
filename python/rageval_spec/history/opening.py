"""Opens the history that a spec or a command names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.errors import UsageError
from rageval_spec.history.database import FILE, History

if TYPE_CHECKING:
    from rageval_spec.spec.history import HistoryNode

SCHEMES = ("postgresql://", "postgres://")


def locate(node: HistoryNode, folder: Path) -> str | Path | None:
    """The address or the file of a spec's history; None if it has none. Relative paths start at `folder`."""
    if node.use == "none":
        return None
    if node.url is not None:
        return node.url.reveal()
    return folder / (FILE if node.path is None else Path(node.path).expanduser())


def open_history(place: str | Path, *, create: bool = True) -> History:
    """Open a history, with its tables up to date.

    Args:
        place: the file of a SQLite database, or the address of a PostgreSQL database.
        create: whether to create the file if it is absent.

    Raises:
        UsageError: there is no such file, or a library is missing.
        HistoryError: the history cannot be reached.
    """
    if str(place).startswith(SCHEMES):
        from rageval_spec.history.postgres import PostgresConnection

        return _migrate(History(PostgresConnection(str(place))))
    path = Path(place)
    if not create and not path.exists():
        raise UsageError(f"there is no history at {path}; {_suggest_place(path)}")
    from rageval_spec.history.sqlite import SqliteConnection

    return _migrate(History(SqliteConnection(path, create=create)))


def _suggest_place(path: Path) -> str:
    """Where a history is instead: it lies beside its spec, which can be in a folder below."""
    nearby = sorted(Path().glob(f"*/.rageval/{path.name}"))
    if nearby:
        return f"it is beside its spec: add --history {nearby[0]}"
    return "rageval-spec run records evaluations"


def exists(place: str | Path | None) -> bool:
    """Whether a history can be read: its file is there, or it is on a server."""
    return place is not None and (str(place).startswith(SCHEMES) or Path(place).exists())


def _migrate(history: History) -> History:
    try:
        history.migrate()
    except BaseException:
        history.connection.close()
        raise
    return history
