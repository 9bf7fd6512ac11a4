"""The contracts of what can be read from a tool or sent to it, and how tools are found.

A source gives traces, and a tool's datasets as traces without an answer. Traces are read once for all blocks of a
spec that ask for the same.

Tools are the modules and packages in `exchange/`, and entry points in the group `rageval_spec.exchange`. A folder with
`source.py` gives its word to `datasets:` and `systems:`, one with `target.py` to `reports:`. The keys of their blocks
are the options of `import` and `export`.

Users write moments as `7d` or as an ISO 8601 time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from rageval_spec.recorded.values import is_dump
from rageval_spec.wording import format_percent, read_duration

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.traces import Trace, TraceLink
    from rageval_spec.exchange.shared.spans.protobuf import Gauge
    from rageval_spec.plugin import Context, Plugin
    from rageval_spec.plugin.budget import Budget
    from rageval_spec.store.disk import InputFile


class ToolNode(BaseModel):
    """What the nodes of sources and targets share. A subclass declares which of its keys go together."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    one_of: ClassVar[tuple[str, ...]] = ()
    """Keys of which exactly one is given."""
    needs: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Keys that mean something only beside another one, each with that one."""
    excludes: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Keys beside which others mean nothing, each with those."""

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if self.one_of and len(given.intersection(self.one_of)) != 1:
            raise ValueError(f"name one of these: {' or '.join(f'`{name}`' for name in self.one_of)}")
        for name, *others in self.excludes:
            if name in given and (wrong := [other for other in others if other in given]):
                raise ValueError(f"`{wrong[0]}` does not go together with `{name}`; leave one of them out")
        for name, other in self.needs:
            if name in given and other not in given:
                raise ValueError(f"`{name}` belongs to `{other}`; name `{other}` too")
        return self


N = TypeVar("N", bound=ToolNode)


class ToolPart(ABC, Generic[N]):
    """What a source and a target of a tool share."""

    node_type: ClassVar[type[ToolNode]]
    summary: ClassVar[str] = ""
    """What is read or sent, as a sentence for the help of `import` or `export`."""
    examples: ClassVar[Sequence[str]] = ()
    """Commands for the help, without the program's name: `import phoenix --project support`."""
    known_as: ClassVar[tuple[str, ...]] = ()
    """What else users may call the dataset and the system, or the report."""

    def __init__(self, node: N, context: Context) -> None:
        """Keep the node and the context; open nothing. Relative paths are resolved with `context.resolve`."""
        self.node = node
        self.context = context

    def remarks(self) -> Sequence[str]:
        """What a user should know about what was read or made, such as spans or answers left out, and why."""
        return ()

    @cached_property
    def api(self) -> Any:
        """What asks the tool, opened by `connect` when it is first needed."""
        return self.connect()

    api_type: ClassVar[type[Any]]
    """What asks the tool, of a node and the name that begins its messages; it has a method `close`."""

    def connect(self) -> Any:
        """Open what asks the tool.

        Raises:
            UsageError: there is no key, or the address cannot be used.
        """
        return self.api_type(self.node, self.context.name)

    def close(self) -> None:
        """Release what was opened. Called once, also after an error."""
        if "api" in vars(self):
            self.api.close()


class TargetNode(ToolNode):
    """Where to send and what: the options of `export`, and the keys of a report with `use:` and this tool's word.

    Fields become options as those of a `SourceNode` do.
    """


@dataclass(frozen=True, slots=True)
class Parcel:
    """One thing to send, such as one score of one trace.

    Attributes:
        key: names it at the destination. Sending two parcels with the same key leaves only the second there.
        body: what to send, as JSON types. A parcel whose body was sent already under its key is not sent again.
        summary: the body in a few words, for `--dry-run`: `faithfulness 0.80 -> trace 4f2a`.
        kind: what the parcel is, in the singular, for counts: `score`, `span annotation`.
    """

    key: str
    body: Any
    summary: str
    kind: str = "value"


T = TypeVar("T", bound=TargetNode)


class Exporter(ToolPart[T]):
    """What `Target` and `FileTarget` share."""

    node_type: ClassVar[type[TargetNode]] = TargetNode


PARTLY = 207
"""The status of an error that says that a tool took only some of what was sent."""


class Target(Exporter[T]):
    """Sends the values of an evaluation to a tool.

    Sending is idempotent: parcels name themselves, so that sending twice leaves the same at the destination. What was
    sent is written down beside the results, so that a killed `export` continues where it stopped.
    """

    batch: ClassVar[int] = 1
    """The most parcels that `send` gets at once."""

    named: ClassVar[tuple[str, ...]] = ()
    """The keys of the node that say where at its URL parcels go."""

    takes: Sequence[Literal["values", "numbers"]] = ()
    """What a running monitor can send here: values of its traces, and the numbers that it shows on `/metrics`."""

    monitor_keys: ClassVar[Mapping[str, Any]] = {}
    """Keys of the node that have a fixed value where a monitor sends."""

    @property
    def destination(self) -> str:
        """Where parcels go, without credentials: `http://localhost:6006, project support`. Names the ledger."""
        node: Any = self.node
        told = (f", {name} {value}" for name in self.named if (value := getattr(node, name)) is not None)
        return "".join((node.find_url(), *told))

    @abstractmethod
    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """Everything there is to send of an evaluation, in an order that does not change. Sends nothing.

        Raises:
            RagevalError: the evaluation has nothing that this tool can take; the message says what it needs.
        """

    @abstractmethod
    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels; once it returns, the tool has stored them.

        Raises:
            RagevalError: the tool did not take all of them.
        """

    def send_numbers(self, numbers: Sequence[Gauge]) -> None:
        """Send the numbers of a running monitor; they replace those before. Called if `takes` says so."""
        raise NotImplementedError


class FileTarget(Exporter[T]):
    """Writes an evaluation to a file in the layout of a tool."""

    filename: ClassVar[str] = ""
    """The usual name of the file, such as `ragas.jsonl`."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """How a name must end, so that no file is taken for another format; () for any name."""

    @abstractmethod
    def render_files(self, evaluation: Evaluation, name: str) -> Iterator[tuple[str, bytes]]:
        """The names and bytes of the files, where `name` is the file that the user asked for, without folders.

        "" stands for that file itself; any other name is a path in a folder of that name without the suffix.

        Raises:
            RagevalError: the evaluation has nothing that this tool can take; the message says what it needs.
        """


class TraceCheck:
    """Counts what looks as if traces were read wrongly, or recorded without what an evaluation needs."""

    SUSPECT = 0.1
    """The share of rows above which a count is a warning."""
    READING = ("question equals answer", "JSON or printed object as question or answer", "contexts twice",
               "merged traces suspected")  # fmt: skip
    """What only a wrong reading explains. The other counts can be what happened."""
    LINES = ("without contexts", "without answer", *READING, "failed")

    def __init__(self) -> None:
        self.rows = 0
        self.counts = dict.fromkeys(self.LINES, 0)
        self._first: dict[str, str] = {}
        self._seen: set[str] = set()
        self._asked_only = 0

    def add(self, trace: Trace) -> None:
        """Count a row. One of a trace that had another one counts as merged."""
        self.rows += 1
        self._asked_only += trace.answer is None and trace.error is None
        for line in self._list_faults(trace):
            self.counts[line] += 1
            self._first.setdefault(line, _show_row(trace))
        self._seen.add(trace.link.trace_id)

    def render(self) -> list[str]:
        """The table, and below it a warning with one row for each line that more than a tenth of the rows have.

        Questions of a dataset have no answers, so only feedback on questions counts there.
        """
        is_dataset = self._asked_only == self.rows
        known = [(line, self.counts[line]) for line in (self.READING if is_dataset else self.LINES)]
        width = max(map(len, self.LINES))
        table = [f"  {'rows':<{width}} {self.rows:>9,}"]
        for line, count in known:
            share = f"  {format_percent(count / self.rows)}" if count else ""
            table.append(f"  {line:<{width}} {count:>9,}{share}")
        warned = [(line, count) for line, count in known if count > self.SUSPECT * self.rows]
        return table + [
            f"warning: {line}: {count:,} of {self.rows:,}, such as {self._first[line]}" for line, count in warned
        ]

    def remarks(self) -> list[str]:
        """What only a wrong reading explains, as one sentence; none if there is nothing of the kind."""
        found = [f"{line}: {self.counts[line]:,}" for line in self.READING if self.counts[line]]
        return [f"of {self.rows:,} rows that were read, {'; '.join(found)}"] if found else []

    def _list_faults(self, trace: Trace) -> Iterator[str]:
        from rageval_spec.data.traces import NO_ANSWER

        texts = [one.text for one in trace.documents or () if one.text is not None]
        if not trace.documents:
            yield "without contexts"
        if not trace.answer and (trace.error is None or trace.error.startswith(NO_ANSWER)):
            yield "without answer"
        elif trace.answer is None:
            yield "failed"
        if trace.answer and trace.answer.strip() == trace.question.strip():
            yield "question equals answer"
        if is_dump(trace.question) or (trace.answer and is_dump(trace.answer)):
            yield "JSON or printed object as question or answer"
        if len(set(texts)) < len(texts):
            yield "contexts twice"
        if trace.link.trace_id in self._seen and trace.answer is not None:
            yield "merged traces suspected"


def _show_row(trace: Trace) -> str:
    question, answer = (json.dumps(text[:_SHOWN] + "..." * (len(text) > _SHOWN), ensure_ascii=False)
                        for text in (trace.question, trace.answer or trace.error or ""))  # fmt: skip
    return f"{trace.id}: question {question}, {'error' if trace.answer is None else 'answer'} {answer}"


_SHOWN = 80
_READ: dict[str, tuple[list[Trace], Sequence[str], Budget]] = {}
"""Traces, remarks, and the budget of the evaluation that read them: while it is held, no other one gets its id."""
_LOCK = Lock()
_MOST_KEPT = 4


def read_traces(source: TraceSource[Any], where: str) -> tuple[list[Trace], Sequence[str]]:
    """All traces of a source, and its remarks.

    A dataset and a system of one spec that read the same traces read them once, so that both see the same. `where`
    begins the message of an error.

    Raises:
        DataError: there are none.
        RagevalError: they cannot be read.
    """
    node, context = source.node.model_dump(mode="json"), source.context
    key = json.dumps([type(source).__module__, node, str(context.folder), id(context.budget)])
    with _LOCK:
        if key not in _READ:
            try:
                traces = list(source.read())
            finally:
                source.close()
            if not traces:
                nothing = f"{where}: there are no traces in what it names; widen `since`, or correct the names"
                raise DataError("; ".join((nothing, *source.remarks())))
            while len(_READ) >= _MOST_KEPT:
                _READ.pop(next(iter(_READ)))
            check = TraceCheck()
            for trace in traces:
                check.add(trace)
            _READ[key] = traces, (*source.remarks(), *check.remarks()), source.context.budget
        return _READ[key][:2]


def _check(text: str | None) -> str | None:
    if text is not None:
        parse_moment(text, datetime(2000, 1, 1, tzinfo=UTC))
    return text


Moment = Annotated[str | None, AfterValidator(_check)]
"""A field of a node: a moment as text, checked and not yet parsed, because `7d` depends on when it is read."""


def parse_moment(text: str, now: datetime) -> datetime:
    """The moment in UTC. `7d` means seven days before `now`; a time without a zone is in UTC.

    Raises:
        ValueError: the text is neither; the message says what to write.
    """
    try:
        if (ago := read_duration(text.lower())) is not None:
            return now - timedelta(seconds=ago)
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a moment; write how long ago, such as 30m, 12h, 7d or 2w, or a time: 2026-03-01T12:00:00Z"
        ) from None


class SourceNode(ToolNode):
    """What to read: the options of `import`, and the keys of a block with `use:` and this tool's word.

    Each field is an option: `project_name` becomes `--project-name`. A field that is required and called `path` becomes
    the argument. A field of type `Secret` is no option, because other users of the machine can see those: it must
    have a default, which the environment gives.
    """


class WindowNode(SourceNode):
    """The keys of a source that can be asked for traces of some time."""

    since: Moment = Field(
        default=None,
        description="Only traces that began at or after this: `7d`, `12h`, `30m`, or an ISO 8601 time. Default: all.",
    )
    until: Moment = Field(default=None, description="Only traces that began before this. Default: until now.")
    limit: int | None = Field(default=None, ge=1, description="The most traces to read, newest first. Default: all.")

    @cached_property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """`since` and `until` as moments, counted from when they are first asked for."""
        now = datetime.now(UTC)
        since, until = (None if text is None else parse_moment(text, now) for text in (self.since, self.until))
        return since, until


S = TypeVar("S", bound=SourceNode)


class TraceSource(ToolPart[S]):
    """Reads traces from one tool."""

    node_type: ClassVar[type[SourceNode]] = SourceNode
    for_specs: ClassVar[type[TraceSource[Any]] | None] = None
    """What a spec reads from the tool, where it is less than what `import` can read."""

    def inputs(self) -> Sequence[InputFile]:
        """The files that are read; none if the traces come from a server."""
        return ()

    def find_page(self, link: TraceLink) -> str | None:  # noqa: ARG002 - for those that know it
        """The address at which people see a trace of this tool in their browser; None if it is not known."""
        return None

    @abstractmethod
    def read(self) -> Iterator[Trace]:
        """The traces, one by one, as they are read; at most a few pages are in memory.

        Raises:
            RagevalError: the tool cannot be asked, or something in its files or replies cannot be read. The message
                names the place: the file and line, or the URL and the trace.
        """


GROUP = "rageval_spec.exchange"


class Tool(NamedTuple):
    """What a tool's module offers; None for what it does not."""

    word: str
    source: type[TraceSource[Any]] | None
    target: type[Exporter[Any]] | None


@cache
def words() -> tuple[str, ...]:
    """The words of all tools, sorted. Imports none of them."""
    return tuple(sorted(_list_own() | {entry.name for entry in entry_points(group=GROUP)}))


def _list_own() -> set[str]:
    return {module.name for module in iter_modules([str(Path(__file__).parent.parent)])} - {"shared"}


@cache
def load(word: str) -> Tool:
    """The tool of a word.

    Raises:
        UsageError: there is no such tool, or its module has neither a source nor a target.
    """
    if word not in words():
        hint = suggest(word, words()) or f"the tools are {', '.join(words())}"
        raise UsageError(f"there is no tool '{word}'; {hint}")
    found = Tool(word, *(getattr(_import(word), name, None) for name in ("SOURCE", "TARGET")))
    if found.source is None and found.target is None:
        raise UsageError(f"the module of the tool '{word}' has neither SOURCE nor TARGET")
    return found


def _import(word: str) -> ModuleType:
    if word in _list_own():
        return import_module(f"rageval_spec.exchange.{word}")
    (entry,) = entry_points(group=GROUP, name=word)
    module: ModuleType = entry.load()
    return module


P = TypeVar("P", bound=ToolPart[Any])
_BASES: Mapping[str, tuple[str, str, str]] = {
    "datasets": ("rageval_spec.datasets.shared.trace_dataset", "TraceDataset", "source_type"),
    "systems": ("rageval_spec.systems.shared.trace_system", "TraceSystem", "source_type"),
    "reports": ("rageval_spec.reports.shared.tool_report", "SendingReport", "target_type"),
}
"""The class that a section's plugins of tools derive from, and its attribute with the tool's source or target."""


def make_plugin(section: str, word: str) -> type[Plugin[Any]]:
    """The plugin class of a tool's word in `datasets`, `systems` or `reports`."""
    module, name, attribute = _BASES[section]
    base = getattr(import_module(module), name)
    tool = load(word)
    part: Any = tool.target if section == "reports" else tool.source and (tool.source.for_specs or tool.source)
    named = word.capitalize() + section.removesuffix("s").capitalize()
    node = create_model(f"{named}Node", __base__=(base.node_type, part.node_type), __doc__=part.summary)
    members = {"node_type": node, attribute: part, "known_as": part.known_as, "__doc__": base.__doc__}
    return type(named, (base,), {**members, "__module__": module})


def open_part(part: type[P], plugin: Plugin[Any]) -> P:
    """The source or the target of a plugin's tool, with what the plugin's block says."""
    node = part.node_type(**{name: getattr(plugin.node, name) for name in part.node_type.model_fields})
    return part(node, replace(plugin.context, models={}, judges={}))


class PlacesNode(SourceNode):
    """The keys that name places in recorded inputs and outputs."""

    question: str | None = Field(
        default=None,
        description="The path of the question in a recorded input: `$.messages[0].content`. Default: the usual places.",
    )
    answer: str | None = Field(
        default=None, description="The path of the answer in a recorded output. Default: the usual places."
    )

    @field_validator("question", "answer")
    @classmethod
    def _check_place(cls, text: str | None) -> str | None:
        from rageval_spec.recorded.json_path import parse_path

        if text is not None:
            parse_path(text)
        return text

    @property
    def places(self) -> RecordedPaths:
        """The places as something that finds."""
        from rageval_spec.recorded.json_path import parse_path

        question, answer = (None if text is None else parse_path(text) for text in (self.question, self.answer))
        return RecordedPaths(question, answer)
