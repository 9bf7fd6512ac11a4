"""The history in a database: a SQLite file, or PostgreSQL for many machines that write at once.

Several processes can use it at once: a SQLite file has a write-ahead log, and PostgreSQL needs psycopg 3 (the extra
`postgres`). Every write is one transaction, so a killed process leaves a complete record or none. A record's id is its
key: sending a record twice keeps one.

`rageval_records` has a row for each record, small enough to list ten thousand of them. The numbers are in
`rageval_aggregates`, and whole files (the results as JSON, the values as Parquet) in `rageval_contents`. A label is a
row of `rageval_labels`, so that moving it changes no record.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.dataclass import dataclass, fields
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, RagevalError, UsageError, describe_fault, expand_home, hide_password
from rageval_spec.plugin.budget import Cost, CostStatus
from rageval_spec.store.disk import enable_write_ahead

if TYPE_CHECKING:
    from rageval_spec.spec.blocks.spec_node import HistoryNode


FILE = Path(".rageval") / "history.db"
SHORTEST_ID = 4
"""The fewest characters of an id that find a record."""
_ID_LENGTH = 32


class HistoryError(RagevalError):
    """The history cannot be reached, read or written."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as the database holds it.

    Attributes:
        row: the columns `RECORD_COLUMNS` by name; `ci`, `gates` and `meaning` are JSON texts.
        aggregates: rows with the columns `AGGREGATE_COLUMNS`.
        contents: whole files by name.
        labels: the labels that the record gets, taken from the records that had them.
    """

    row: Mapping[str, Any]
    aggregates: Sequence[Sequence[Any]]
    contents: Mapping[str, bytes]
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """What `history list` tells of one record, without its numbers. What is not known is None.

    Attributes:
        time: when the evaluation ended, in UTC.
        is_dirty: whether tracked files differed from the commit.
        ci: what the CI system told: "system", "run", "url" and "request" (the pull request).
        cost: the dollars spent on calls, as far as they are known; None if no call was made, too.
        cost_status: None if no call was made, or if an earlier version wrote the record.
        seconds: how long the evaluation took.
        gates: the outcome of each gate with its numeric bounds.
        meaning: digests of what decides whether its numbers can be compared; see `history.metric_definitions`. Also
            what it took over of earlier evaluations, as in results.json.
    """

    id: str
    time: datetime
    name: str
    commit: str | None
    branch: str | None
    is_dirty: bool | None
    ci: Mapping[str, str]
    outcome: str
    spec_digest: str
    cost: float | None
    seconds: float | None
    gates: Sequence[Mapping[str, Any]]
    meaning: Mapping[str, Any]
    labels: tuple[str, ...] = ()
    cost_status: CostStatus | None = None

    @property
    def shown_cost(self) -> str:
        """`$0.40`, `at least $0.40` or `unknown`; "" if no call was made."""
        if self.cost is None and self.cost_status is None:
            return ""
        return str(Cost(self.cost, self.cost_status or "known"))


class Number(NamedTuple):
    """An aggregate of a record, with the attributes of `Aggregate`; `low` and `high` are its interval."""

    record_id: str
    dataset: str
    system: str
    metric: str
    slice: str | None
    statistic: str
    mean: float | None
    low: float | None
    high: float | None
    scored: int
    total: int


RECORD_COLUMNS = tuple(
    "git_commit" if one.name == "commit" else one.name for one in fields(RecordSummary) if one.name != "labels"
)
_LATER_COLUMNS = ("cost_status",)
"""The columns that a record of an earlier version, kept in a file, lacks."""
AGGREGATE_COLUMNS = Number._fields


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records to read, at most `limit` of the newest; None does not restrict them."""

    name: str | None = None
    branch: str | None = None
    since: datetime | None = None
    outcome: str | None = None
    limit: int | None = None


class Connection:
    """A connection to a database: SQL with `?` for parameters, and transactions."""

    name: str
    bytes_type: str
    of_table = "SELECT 1 FROM sqlite_master WHERE name = ?"
    """A query that has a row if there is a table of this name."""
    _connection: Any
    _errors: type[Exception]

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with self._explained():
            cursor = self._connection.execute(self._translate(statement), [*map(self._clean, parameters)])
            return cursor.fetchall() if cursor.description else ()

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._explained():
            cursor = self._connection.cursor()
            cursor.executemany(self._translate(statement), [[*map(self._clean, row)] for row in rows])
            cursor.close()

    def write(self) -> AbstractContextManager[None]:
        """A transaction that writes. It is committed at the end of the block, or rolled back if the block raises."""
        raise NotImplementedError

    def find_version(self, schema: str = "rageval_schema") -> int:
        """The version that the table `schema` holds; 0 if there is no such table yet."""
        if not self.execute(self.of_table, (schema,)):
            return 0
        return int(self.execute(f"SELECT version FROM {schema}")[0][0])

    def lock(self) -> None:
        """Within a transaction that writes: let no other process migrate until its end."""

    def compact(self) -> None:
        """Give the space of removed rows back to the disk, if the database does not do that itself."""

    def close(self) -> None:
        self._connection.close()

    def _translate(self, statement: str) -> str:
        return statement

    def _clean(self, value: Any) -> Any:
        """Text without lone surrogates, which UTF-8 cannot hold."""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value

    def _explain(self, error: Exception) -> HistoryError:
        raise NotImplementedError

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise self._explain(error) from error


SQLITE_PATIENCE = 30.0
"""Seconds to wait while another process writes."""
_IGNORED = "history.db*\n"


class SqliteConnection(Connection):
    bytes_type = "BLOB"

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Open the file, and create it with its folder if `create` says so."""
        import sqlite3

        self.name, self._errors = str(path), sqlite3.Error
        try:
            if create and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _keep_out_of_git(path.parent)
            mode = "rwc" if create else "rw"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._connection = sqlite3.connect(uri, timeout=SQLITE_PATIENCE, isolation_level=None, uri=True)
        except (OSError, sqlite3.Error, ValueError) as error:
            raise self._explain(error) from error
        try:
            with self._explained():
                enable_write_ahead(self._connection, SQLITE_PATIENCE)
                self._connection.execute("PRAGMA foreign_keys = ON")
        except HistoryError:
            self.close()
            raise

    @contextmanager
    def write(self) -> Iterator[None]:
        import sqlite3

        self.execute("BEGIN IMMEDIATE")  # waits for other writers
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back itself, for example if the disk is full
                self._connection.execute("ROLLBACK")
            raise

    def compact(self) -> None:
        """Shrink the file, unless other processes use it."""
        import sqlite3

        with suppress(sqlite3.OperationalError):
            self._connection.execute("VACUUM")

    def _explain(self, error: Exception) -> HistoryError:
        hint = " (is the disk full?)" if _is_input_output(error) else ""
        return HistoryError(f"the history {self.name} cannot be used: {error}{hint}")


def _is_input_output(error: Exception) -> bool:
    """Whether SQLite could not read or write; its message does not say why. The code's low byte is its kind."""
    import sqlite3

    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR


def _keep_out_of_git(folder: Path) -> None:
    """Make git ignore the database, which changes with every evaluation. Labels saved as folders can be committed."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(_IGNORED, encoding="utf-8")


POSTGRES_PATIENCE = 20.0
"""Seconds to wait while the server has no free connection, or starts."""
_CONNECT_TIMEOUT = 5
_LOCK = 0x7261676576616C
"""The key of the lock under which one process at a time migrates: "rageval" in ASCII."""
_BUSY_CODES = ("53300", "57P03")
_BUSY_WORDS = ("too many clients", "remaining connection slots", "the database system is starting up")


class PostgresConnection(Connection):
    bytes_type = "BYTEA"
    # not to_regclass: after waiting for the lock, it can answer from a cache that has not seen the new tables
    of_table = "SELECT 1 FROM pg_tables WHERE tablename = ? AND schemaname = ANY (current_schemas(false))"

    def __init__(self, url: str) -> None:
        """Connect to the server. A server that is busy or starts is asked again for `POSTGRES_PATIENCE` seconds."""
        try:
            import psycopg
        except ImportError as error:
            message = "a history in PostgreSQL needs psycopg; install it with: pip install 'rageval-spec[postgres]'"
            raise UsageError(message) from error
        self._url, self.name = url, hide_password(url)
        self._errors = psycopg.Error
        until = time.monotonic() + POSTGRES_PATIENCE
        while True:
            try:
                # No prepared statements: PgBouncer can give each transaction another connection to the server.
                self._connection = psycopg.connect(
                    url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT, prepare_threshold=None
                )
                return
            except psycopg.Error as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise self._explain(error) from None  # the cause's text can hold the password
                time.sleep(random.uniform(0.05, 0.5))

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._explained(), self._connection.transaction():
            yield

    def lock(self) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))

    def _explain(self, error: Exception) -> HistoryError:
        return HistoryError(f"the history {self.name} cannot be used: {describe_fault(self._url, error)}")

    def _translate(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def _clean(self, value: Any) -> Any:
        """Text without null characters, which PostgreSQL cannot hold, and without lone surrogates."""
        return super()._clean(value.replace("\0", "\ufffd")) if isinstance(value, str) else value


def _is_busy(error: Any) -> bool:
    """Whether the server has no free connection, or starts. An error of connecting has no code, only words."""
    return error.sqlstate in _BUSY_CODES or any(words in str(error) for words in _BUSY_WORDS)


@dataclass
class History:
    """The records in a database. Use it as a context manager; it closes the connection."""

    connection: Connection

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def migrate(self) -> None:
        """Bring the tables to this version's schema, in one transaction."""
        migrate(self.connection, "rageval_schema", MIGRATIONS)

    def add(self, records: Iterable[StoredRecord]) -> int:
        """Write records in one transaction, and return how many are new. Those that are there already stay."""
        with self.connection.write():
            return sum([self._add(record) for record in records])

    def _add(self, record: StoredRecord) -> bool:
        record_id = record.row["id"]
        added = self.connection.execute(
            f"{insert('rageval_records', RECORD_COLUMNS)} ON CONFLICT (id) DO NOTHING RETURNING id",
            [record.row[name] for name in RECORD_COLUMNS],
        )
        if not added:
            return False
        self.connection.execute_many(insert("rageval_aggregates", AGGREGATE_COLUMNS), record.aggregates)
        contents = [(record_id, part, content) for part, content in record.contents.items()]
        self.connection.execute_many(insert("rageval_contents", ("record_id", "part", "content")), contents)
        for label in record.labels:
            self._set_label(record_id, label, record.row["time"])
        return True

    def copy(self) -> Iterator[StoredRecord]:
        """All records with everything that they hold, oldest first, one at a time; `add` takes them."""
        for entry in reversed(self.entries()):
            row = self._select(RECORD_COLUMNS, "rageval_records", "id", entry.id)[0]
            contents = self._select(("part", "content"), "rageval_contents", "record_id", entry.id)
            yield StoredRecord(
                dict(zip(RECORD_COLUMNS, row, strict=True)),
                [*self.numbers_of(entry.id)],
                {part: bytes(content) for part, content in contents},
                entry.labels,
            )

    def _select(self, columns: Sequence[str], table: str, key: str, record_id: str) -> Sequence[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {key} = ?", (record_id,))

    def set_label(self, record_id: str, label: str) -> None:
        """Give a record a label. Another record loses it."""
        if not label.strip():
            raise UsageError("a label must not be empty")
        with self.connection.write():
            self._set_label(record_id, label, write_time(datetime.now(UTC)))

    def _set_label(self, record_id: str, label: str, time: str) -> None:
        """Set a label, unless it was set later than `time` (by a process that overtook this one)."""
        self.connection.execute(
            "INSERT INTO rageval_labels (label, record_id, time) VALUES (?, ?, ?) ON CONFLICT (label) DO UPDATE SET "
            "record_id = excluded.record_id, time = excluded.time WHERE excluded.time >= rageval_labels.time",
            (label, record_id, time),
        )

    def remove_label(self, label: str) -> bool:
        """Remove a label; its record stays. Returns whether there was such a label."""
        with self.connection.write():
            return bool(self.connection.execute("DELETE FROM rageval_labels WHERE label = ? RETURNING label", (label,)))

    def labels(self) -> dict[str, tuple[str, datetime]]:
        """The id of each label's record, and when the label was set, by label."""
        rows = self.connection.execute("SELECT label, record_id, time FROM rageval_labels ORDER BY label")
        return {label: (record_id, datetime.fromisoformat(time)) for label, record_id, time in rows}

    def entries(self, chosen: RecordFilter = RecordFilter()) -> list[RecordSummary]:
        """The records, newest first."""
        where, parameters = _restrict(chosen)
        limit = "" if chosen.limit is None else f" LIMIT {int(chosen.limit)}"
        rows = self.connection.execute(
            f"SELECT {', '.join(RECORD_COLUMNS)} FROM rageval_records{where} ORDER BY time DESC, id{limit}", parameters
        )
        of_record: dict[str, list[str]] = {}
        for label, (record_id, _) in self.labels().items():
            of_record.setdefault(record_id, []).append(label)
        return [_read_entry(row, of_record.get(row[0], ())) for row in rows]

    def numbers(self, metric: str | None = None, chosen: RecordFilter = RecordFilter()) -> Iterator[Number]:
        """The aggregates of the chosen records (regardless of `limit`), for one metric or for all."""
        where, parameters = _restrict(chosen, "r.")
        if metric is not None:
            where += f"{' AND' if where else ' WHERE'} a.metric = ?"
            parameters = [*parameters, metric]
        columns = ", ".join(f"a.{name}" for name in AGGREGATE_COLUMNS)
        rows = self.connection.execute(
            f"SELECT {columns} FROM rageval_aggregates a JOIN rageval_records r ON r.id = a.record_id{where}",
            parameters,
        )
        return map(Number._make, rows)

    def numbers_of(self, record_id: str) -> Iterator[Number]:
        """The aggregates of one record, in the order of its tables."""
        return map(Number._make, self._select(AGGREGATE_COLUMNS, "rageval_aggregates", "record_id", record_id))

    def metrics(self) -> list[str]:
        return sorted(row[0] for row in self.connection.execute("SELECT DISTINCT metric FROM rageval_aggregates"))

    def find(self, text: str) -> str:
        """The id of the record that `text` means: a label, an id, or the beginning of one id only."""
        if (found := self.look_up(text)) is not None:
            return found
        known = self.labels()
        hint = suggest(text, list(known)) or "rageval-spec history list shows the records"
        raise UsageError(f"the history {self.connection.name} has no record '{text}'; {hint}")

    def look_up(self, text: str) -> str | None:
        """As `find`, but None if there is no such record; several ids that begin like this are an error."""
        if labelled := self.connection.execute("SELECT record_id FROM rageval_labels WHERE label = ?", (text,)):
            return str(labelled[0][0])
        if not SHORTEST_ID <= len(text) <= _ID_LENGTH or not text.isascii() or not text.isalnum():
            return None
        rows = self.connection.execute(
            "SELECT id FROM rageval_records WHERE id LIKE ? ORDER BY id LIMIT 2", (f"{text}%",)
        )
        if len(rows) > 1 and rows[0][0] != text:
            raise UsageError(f"several records have an id that begins with '{text}'; write more of it")
        return str(rows[0][0]) if rows else None

    def entry(self, record_id: str) -> RecordSummary:
        rows = self._select(RECORD_COLUMNS, "rageval_records", "id", record_id)
        if not rows:
            raise UsageError(f"the history {self.connection.name} has no record '{record_id}'")
        return _read_entry(rows[0], [label for label, (found, _) in self.labels().items() if found == record_id])

    def content(self, record_id: str, part: str) -> bytes:
        rows = self.connection.execute(
            "SELECT content FROM rageval_contents WHERE record_id = ? AND part = ?", (record_id, part)
        )
        if not rows:
            raise DataError(f"the record {record_id} in {self.connection.name} has no {part}")
        return bytes(rows[0][0])

    def prune(self, before: datetime, *, is_dry: bool = False) -> list[str]:
        """Remove the records from before a time, except those with a label. Returns their ids, oldest first."""
        condition = "time < ? AND id NOT IN (SELECT record_id FROM rageval_labels)"
        if is_dry:
            statement = f"SELECT id, time FROM rageval_records WHERE {condition}"
            rows = self.connection.execute(statement, (write_time(before),))
        else:
            with self.connection.write():
                statement = f"DELETE FROM rageval_records WHERE {condition} RETURNING id, time"
                rows = self.connection.execute(statement, (write_time(before),))
            self.connection.compact()
        return [record_id for record_id, _ in sorted(rows, key=lambda row: (row[1], row[0]))]


def migrate(connection: Connection, schema: str, migrations: Sequence[Sequence[str]]) -> None:
    """Bring tables to the version that the migrations lead to; the table `schema` holds the version that they have."""
    if _is_current(connection, schema, migrations):
        return
    with connection.write():
        connection.lock()
        if _is_current(connection, schema, migrations):  # another process migrated meanwhile
            return
        version = connection.find_version(schema)
        if version == 0:
            connection.execute(f"CREATE TABLE {schema} (version INTEGER NOT NULL)")
            connection.execute(f"INSERT INTO {schema} (version) VALUES (0)")
        for statement in (one for step in migrations[version:] for one in step):
            connection.execute(statement.replace("BYTES", connection.bytes_type))
        connection.execute(f"UPDATE {schema} SET version = ?", (len(migrations),))


def _is_current(connection: Connection, schema: str, migrations: Sequence[Sequence[str]]) -> bool:
    version = connection.find_version(schema)
    if version > len(migrations):
        raise HistoryError(
            f"{connection.name}: a newer version of rageval-spec made this history "
            f"(schema {version}, this version knows {len(migrations)}); update rageval-spec"
        )
    return version == len(migrations)


def write_time(time: datetime) -> str:
    """The time in UTC as text with a fixed number of digits, so that texts sort as times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def insert_or_set(table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    """Inserts a row, or sets the columns of the row that has these keys."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"{insert(table, (*keys, *columns))} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


def insert_or_add(table: str, keys: Sequence[str], columns: Sequence[str]) -> str:
    """Inserts a row, or adds the columns to those of the row that has these keys."""
    changes = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in columns)
    return f"{insert(table, (*keys, *columns))} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


def _restrict(chosen: RecordFilter, prefix: str = "") -> tuple[str, list[Any]]:
    since = None if chosen.since is None else write_time(chosen.since)
    conditions = {
        "name = ?": chosen.name,
        "branch = ?": chosen.branch,
        "time >= ?": since,
        "outcome = ?": chosen.outcome,
    }
    asked = {f"{prefix}{condition}": value for condition, value in conditions.items() if value is not None}
    return (f" WHERE {' AND '.join(asked)}" if asked else ""), list(asked.values())


@lru_cache(256)
def _parse(text: str) -> Any:
    """The content of a JSON text; most records have the same gates and digests, so that texts repeat."""
    return json.loads(text)


def complete_row(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a record that was kept in a file, by this version or an earlier one, as the table now has it."""
    row = {name: kept[name] for name in RECORD_COLUMNS if name not in _LATER_COLUMNS}
    if "cost_status" in kept or row["cost"] != 0:
        return {**row, "cost_status": kept.get("cost_status")}
    return {**row, "cost": None, "cost_status": "unknown"}


def _read_entry(row: Sequence[Any], labels: Sequence[str]) -> RecordSummary:
    found = dict(zip(RECORD_COLUMNS, row, strict=True))
    found["commit"] = found.pop("git_commit")
    found["time"] = datetime.fromisoformat(found["time"])
    found["is_dirty"] = None if found["is_dirty"] is None else bool(found["is_dirty"])
    found |= {name: _parse(found[name]) for name in ("ci", "gates", "meaning")}
    return RecordSummary(**found, labels=tuple(sorted(labels)))


MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE rageval_records (
            id TEXT PRIMARY KEY, time TEXT NOT NULL, name TEXT NOT NULL, git_commit TEXT, branch TEXT,
            is_dirty INTEGER, ci TEXT NOT NULL, outcome TEXT NOT NULL, spec_digest TEXT NOT NULL,
            cost DOUBLE PRECISION, seconds DOUBLE PRECISION, gates TEXT NOT NULL, meaning TEXT NOT NULL
        )""",
        "CREATE INDEX rageval_records_time ON rageval_records (time)",
        """CREATE TABLE rageval_labels (
            label TEXT PRIMARY KEY, record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            time TEXT NOT NULL
        )""",
        """CREATE TABLE rageval_aggregates (
            record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            dataset TEXT NOT NULL, system TEXT NOT NULL, metric TEXT NOT NULL, slice TEXT, statistic TEXT NOT NULL,
            mean DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION,
            scored INTEGER NOT NULL, total INTEGER NOT NULL
        )""",
        "CREATE INDEX rageval_aggregates_record ON rageval_aggregates (record_id)",
        "CREATE INDEX rageval_aggregates_metric ON rageval_aggregates (metric)",
        """CREATE TABLE rageval_contents (
            record_id TEXT NOT NULL REFERENCES rageval_records (id) ON DELETE CASCADE,
            part TEXT NOT NULL, content BYTES NOT NULL, PRIMARY KEY (record_id, part)
        )""",
    ),
    (
        "ALTER TABLE rageval_records ADD COLUMN cost_status TEXT",
        # A call without a price used to count as 0 dollars.
        "UPDATE rageval_records SET cost = NULL, cost_status = 'unknown' WHERE cost = 0",
    ),
)
"""The statements that lead from each schema version to the next. Entries are only ever added at the end.

`BYTES` stands for the database's type of byte strings. The empty database has version 0.
"""


SCHEMES = ("postgresql://", "postgres://")


def locate(node: HistoryNode, folder: Path) -> str | Path | None:
    """The address or the file of a spec's history; None if it has none. Relative paths start at `folder`."""
    if node.use == "none":
        return None
    if node.url is not None:
        return node.url.reveal()
    return folder / (FILE if node.path is None else expand_home(node.path))


def open_history(place: str | Path, *, create: bool = True) -> History:
    """Open the history at a PostgreSQL address or in a SQLite file, which `create` makes if it is absent.

    Its tables are brought up to date.
    """
    connection: Connection
    if str(place).startswith(SCHEMES):
        connection = PostgresConnection(str(place))
    elif create or (path := Path(place)).exists():
        connection = SqliteConnection(Path(place), create=create)
    else:
        raise UsageError(f"there is no history at {path}; {_suggest_place(path)}")
    history = History(connection)
    try:
        history.migrate()
    except BaseException:
        connection.close()
        raise
    return history


def peek(path: Path) -> tuple[int, str | None, tuple[str, ...]]:
    """How many records the file has, the time of the newest, and its labels; the file and its folder stay as they are.

    Raises HistoryError: it cannot be read.
    """
    import sqlite3

    # Opening a file in write-ahead mode makes two others beside it, unless they are there or it is called immutable.
    log = path.with_name(f"{path.name}-wal")
    uri = f"{path.absolute().as_uri()}?mode=ro{'' if log.exists() else '&immutable=1'}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            count, newest = connection.execute("SELECT count(*), max(time) FROM rageval_records").fetchone()
            labels = connection.execute("SELECT label FROM rageval_labels ORDER BY label").fetchall()
    except (sqlite3.Error, OSError) as error:
        raise HistoryError(f"the history {path} cannot be read: {error}") from error
    return count, newest, tuple(str(label) for (label,) in labels)


def _suggest_place(path: Path) -> str:
    """Where a history is instead: it lies beside its spec, which can be in a folder below."""
    nearby = sorted(Path().glob(f"*/.rageval/{path.name}"))
    if nearby:
        return f"it is next to its spec: add --history {nearby[0]}"
    return "rageval-spec run records evaluations"


def exists(place: str | Path | None) -> bool:
    """Whether a history can be read: its file is there, or it is on a server."""
    return place is not None and (str(place).startswith(SCHEMES) or Path(place).exists())
