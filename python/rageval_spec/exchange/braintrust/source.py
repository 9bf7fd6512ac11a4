"""Reads experiments, logs and datasets of Braintrust, from its API or from exported files.

The rows of one root span become a trace. The rows of datasets become questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.traces import Feedback, Trace, TraceLink
from rageval_spec.endpoints.service import ServiceError, quote_part
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    Connection,
    ToolApi,
    bear,
    describe_key,
    describe_url,
    read_object,
    require_key,
)
from rageval_spec.exchange.shared.row_groups import LONGEST, Rows, SpooledNode, SpooledSource, TraceRow, make_item
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span, make_span, nanoseconds_of
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import RecordedPaths

Kind = Literal["experiment", "project_logs", "dataset"]
_PAGE = 1000


class BraintrustConnection(Connection):
    url_variables = ("BRAINTRUST_API_URL",)
    usual_url = "https://api.braintrust.dev"
    url: str | None = describe_url("Braintrust's API", url_variables, usual_url)
    api_key: Secret | None = describe_key("API key", "BRAINTRUST_API_KEY")


class BraintrustApi(ToolApi):
    """One organisation's projects, below `/v1`."""

    product = "Braintrust"

    def __init__(self, node: BraintrustConnection, where: str) -> None:
        key = require_key(node.api_key, where, "BRAINTRUST_API_KEY")
        super().__init__(f"{node.find_url()}/v1", where, bear(key))

    def find(self, kind: Kind, project: str, name: str | None) -> str:
        """The id of what has rows: an experiment or a dataset by its name, or the logs of a project."""
        if kind == "project_logs":
            path, what, asked = "/project", f"project '{project}'", [("project_name", project)]
        else:
            path, what = f"/{kind}", f"{kind} '{name}' in the project '{project}'"
            asked = [("project_name", project), (f"{kind}_name", name or "")]
        for one in self.read(self.service.get(path, asked), "objects", path):
            if isinstance(one, Mapping) and isinstance(one.get("id"), str):
                return str(one["id"])
        raise DataError(f"{self.where}: there is no {what}")

    def open_experiment(self, project: str, name: str) -> str:
        """The id of an experiment, which is created unless it is there, with its project."""
        owner = self._create("/project", {"name": project})
        return self._create("/experiment", {"project_id": owner, "name": name, "ensure_new": False})

    def rows(self, kind: Kind, identity: str) -> Iterator[list[Any]]:
        """Pages of rows, newest first."""
        yield from self.pages(f"/{kind}/{quote_part(identity)}/fetch", {"limit": _PAGE}, "events", posts=True)

    def insert(self, kind: Kind, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows: new ones, replaced ones, and, with `_is_merge`, parts of those that are there."""
        found = self.service.post(f"/{kind}/{quote_part(identity)}/insert", {"events": list(rows)})
        taken = found.get("row_ids") if isinstance(found, Mapping) else None
        if not isinstance(taken, list) or len(taken) != len(rows):
            number = len(taken) if isinstance(taken, list) else 0
            raise ServiceError(f"{self.where}: Braintrust took {number} of {len(rows)} rows")

    def _create(self, path: str, body: Mapping[str, Any]) -> str:
        return str(self.read(self.service.post(path, body), "id", path, str))


TOOL = "braintrust"


class BraintrustSourceNode(BraintrustConnection, SpooledNode):
    project: str | None = Field(default=None, description="The project: its logs, or what the next keys name in it.")
    experiment: str | None = Field(default=None, description="Read the rows of this experiment of the project.")
    one_of = ("project", "path")
    excludes = (("path", "experiment", "dataset"), ("experiment", "dataset"))


class BraintrustSource(SpooledSource[BraintrustSourceNode]):
    node_type = BraintrustSourceNode
    summary = "Read experiments, logs and datasets of Braintrust, from its API or from exported files."
    examples = (
        "import braintrust --project support --since 7d -o traces.jsonl",
        "import braintrust --project support --experiment nightly -o answers.jsonl",
        "import braintrust --project support --dataset golden -o golden.jsonl",
        "import braintrust experiment.json -o answers.jsonl",
    )

    tool = TOOL
    api: BraintrustApi
    api_type = BraintrustApi

    def __init__(self, node: BraintrustSourceNode, context: Any) -> None:
        super().__init__(node, context)
        self._link: dict[str, str] = {}
        self._rows = 0

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """The rows of the experiment or of the project's logs, until those that are older than the window."""
        kind: Kind = "project_logs" if self.node.experiment is None else "experiment"
        identity = self.api.find(kind, self.node.project or "", self.node.experiment)
        self._link = {"object": kind, "object_id": identity}
        for number, page in enumerate(self.api.rows(kind, identity), 1):
            yield self.place_rows(number, page)
            if all(map(self._is_before, page)):
                return

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        for page in self.api.rows("dataset", self.api.find("dataset", self.node.project or "", dataset)):
            for row in page:
                if not isinstance(row, Mapping):
                    raise DataError(f"{TOOL}: dataset '{dataset}': a row is not an object")
                yield read_row(row, self.node.places, dataset, self.node.project)

    def prepare(self, place: str, row: Mapping[str, Any]) -> TraceRow | None:
        """A row under its root span; a row of a plain export stands for itself."""
        found = {key: value for key, value in row.items() if value is not None and value != ""}
        if "input" not in found and "id" not in found:
            raise DataError(f"{place}: there is no 'input' and no 'id' in this row, as Braintrust's rows have")
        self._rows += 1
        identity = values.read_text(found.get("id")) or f"row-{self._rows}"
        time = nanoseconds_of(found.get("created")) or None
        # Groups without a time leave in the descending order of their names: the first row of a file comes first.
        group = values.read_text(found.get("root_span_id")) or f"row {10**12 - self._rows}"
        return TraceRow(group, identity, time, values.clean({**found, "id": identity}))

    def assemble(self, rows: Rows) -> Trace | None:
        return make_trace(rows, self.node.places, self._link, self.node.project)

    def is_cut(self, rows: Rows) -> bool:
        return not any(map(is_root, rows))

    def _is_before(self, row: Any) -> bool:
        """Whether a row is so much older than the window that all rows after it are older, too."""
        since, _ = self.node.window
        made = values.read_time(row.get("created")) if isinstance(row, Mapping) else None
        return since is not None and made is not None and made < since - LONGEST


Row = Mapping[str, Any]
OURS = "rageval"
"""The part of a row's metadata with what this program says of its values, by their names."""
_KINDS = {"llm": "llm", "tool": "tool", "score": "evaluator", "scorer": "evaluator", "task": None, "eval": None}
"""Kinds of spans by Braintrust's types; tasks and evaluations only hold others."""


def make_trace(
    rows: Sequence[Row], places: RecordedPaths, link: Mapping[str, str], project: str | None
) -> Trace | None:
    """The trace of some rows; None if its root has no question, or is not among them.

    `link` says in which experiment or log the rows are.
    """
    root = next((row for row in rows if is_root(row)), None)
    if root is None:
        return None
    spans = {id(row): _make_span(row, str(root["id"])) for row in rows}
    trace = SpanReader(TOOL, places).read_question(spans[id(root)], [*spans.values()])
    if trace is None:
        return None
    started = values.write_time(values.read_time(root.get("created")))
    others = {**link, "row_id": str(root["id"]), **({"started": started} if started else {})}
    trace_id = values.read_text(root.get("root_span_id")) or str(root["id"])
    return replace(
        trace,
        link=TraceLink(TOOL, trace_id, project=project, others=others),
        references=places.references(root.get("expected")),
        relevant=questions_and_answers.read_relevant(values.open_text(root.get("expected")), trace.metadata),
        started=started,
        feedback=tuple(_list_scores(root)),
    )


def _make_span(row: Row, trace_id: str) -> Span:
    about, metrics, named = (_open(row, part) for part in ("metadata", "metrics", "span_attributes"))
    about = {key: value for key, value in about.items() if key != OURS}
    kind, name = str(named.get("type", "")), values.read_text(named.get("name")) or ""
    parents = values.open_text(row.get("span_parents"))
    start, end = (values.read_number(metrics.get(name)) for name in ("start", "end"))
    error = row.get("error")
    retrieves = kind != "llm" and questions_and_answers.retrieves(name)
    return make_span(
        trace_id,
        values.read_text(row.get("span_id")) or str(row.get("id")),
        str(parents[0]) if isinstance(parents, list) and parents else None,
        name,
        nanoseconds_of(row.get("created")) if start is None else round(start * 1_000_000) * 1000,
        0 if start is None or end is None else round(end * 1_000_000) * 1000,
        None if error in (None, "", {}) else values.dump_text(error),
        kind="retriever" if retrieves and not is_root(row) else _KINDS.get(kind, "chain"),
        input=row.get("input"),
        output=row.get("output"),
        input_tokens=values.read_count(metrics.get("prompt_tokens")),
        output_tokens=values.read_count(metrics.get("completion_tokens")),
        cost=values.read_number(metrics.get("estimated_cost")),
        model=values.read_text(about.get("model")),
        finish_reason=find_end(row.get("metadata")),
        session=values.read_text(about.get("session_id")),
        user=values.read_text(about.get("user_id")),
        metadata=about,
        tags=values.open_text(row.get("tags")) or None,
    )


def read_row(row: Row, places: RecordedPaths, dataset: str, project: str | None) -> Trace | None:
    """The question of a row of a dataset, under the row's id; None without a question."""
    question = places.question(row.get("input"))
    if not question or values.read_text(row.get("id")) is None:
        return None
    link = TraceLink(TOOL, str(row["id"]), project=project, others={"dataset": dataset})
    return make_item(link, link.trace_id, question, places, row.get("input"), row.get("expected"), row.get("metadata"))


def is_root(row: Row) -> bool:
    """Whether all other rows of a trace belong to this one; a row of a plain export always is."""
    parents = values.open_text(row.get("span_parents"))
    marked = row.get("is_root")
    return marked in (True, "true", "True") if marked is not None else not parents


def _open(row: Row, part: str) -> Mapping[str, Any]:
    """A part of a row that is an object, also one that is written as JSON."""
    return read_object(values.open_text(row.get(part)))


def _list_scores(root: Row) -> Iterator[Feedback]:
    """The scores of a row: in one mapping, or, in CSV, each in a column such as `scores.Factuality`.

    Those that this program added to a row are left out; `metadata` names them.
    """
    named = dict(_open(root, "scores"))
    named |= {key.removeprefix("scores."): value for key, value in root.items() if key.startswith("scores.")}
    ours = read_object(_open(root, "metadata").get(OURS))
    for name, value in named.items():
        if name not in ours and (number := values.read_number(value)) is not None:
            yield Feedback(str(name), number, source="program")
