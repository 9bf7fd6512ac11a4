"""Reads experiments, logs and datasets of Braintrust, from its API or from exported files.

The rows of one root span become a trace. The rows of datasets become questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from rageval_spec.data.traces import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.endpoints.service import Service, ServiceError, quote_part
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.connections import (
    ToolApi,
    choose_url,
    list_row_pages,
    read_key,
    read_object,
    require_key,
    require_url,
)
from rageval_spec.exchange.shared.row_groups import (
    LONGEST,
    Rows,
    SpooledNode,
    SpooledSource,
    TraceRow,
    add_known,
    make_item,
)
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded import questions_and_answers, values
from rageval_spec.recorded.answers_and_steps import find_end
from rageval_spec.recorded.questions_and_answers import RecordedPaths

Kind = Literal["experiment", "project_logs", "dataset"]
_PAGE = 1000
CLOUD = "https://api.braintrust.dev"


class BraintrustConnection(BaseModel):
    url: str | None = Field(
        default=None, description=f"The URL of Braintrust's API. Default: `$BRAINTRUST_API_URL`, else {CLOUD}."
    )
    api_key: Secret | None = Field(
        default=None, description="The API key: `${secret:VAR}`. Default: `$BRAINTRUST_API_KEY`."
    )


def find_url(node: BraintrustConnection) -> str:
    """The URL of the node, of the environment, or of Braintrust's cloud."""
    return choose_url(node.url, ("BRAINTRUST_API_URL",), CLOUD)


class BraintrustApi(ToolApi):
    """One organisation's projects, below `/v1`."""

    def __init__(self, node: BraintrustConnection, where: str) -> None:
        url = require_url(find_url(node), where)
        key = require_key(node.api_key, where, "BRAINTRUST_API_KEY").reveal()
        headers = {"Authorization": Secret(f"Bearer {key}", "Bearer ${API_KEY}")}
        super().__init__(Service(f"{url}/v1", where, headers=headers), where)

    def find(self, kind: Kind, project: str, name: str | None) -> str:
        """The id of what has rows: an experiment or a dataset by its name, or the logs of a project."""
        if kind == "project_logs":
            path, what, asked = "/project", f"project '{project}'", [("project_name", project)]
        else:
            path, what = f"/{kind}", f"{kind} '{name}' in the project '{project}'"
            asked = [("project_name", project), (f"{kind}_name", name or "")]
        for one in self._read(self.service.get(path, asked), "objects", path):
            if isinstance(one, Mapping) and isinstance(one.get("id"), str):
                return str(one["id"])
        raise DataError(f"{self.where}: there is no {what}")

    def open_experiment(self, project: str, name: str) -> str:
        """The id of an experiment, which is created unless it is there, with its project."""
        owner = self._create("/project", {"name": project})
        return self._create("/experiment", {"project_id": owner, "name": name, "ensure_new": False})

    def rows(self, kind: Kind, identity: str) -> Iterator[list[Any]]:
        """Pages of rows, newest first."""
        path = f"/{kind}/{quote_part(identity)}/fetch"

        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            found = self.service.post(path, {"limit": _PAGE, **cursor})
            return self._read(found, "events", path), found.get("cursor")

        return list_row_pages(fetch, f"{self.where}: {path}")

    def insert(self, kind: Kind, identity: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows: new ones, replaced ones, and, with `_is_merge`, parts of those that are there."""
        found = self.service.post(f"/{kind}/{quote_part(identity)}/insert", {"events": list(rows)})
        taken = found.get("row_ids") if isinstance(found, Mapping) else None
        if not isinstance(taken, list) or len(taken) != len(rows):
            number = len(taken) if isinstance(taken, list) else 0
            raise ServiceError(f"{self.where}: Braintrust took {number} of {len(rows)} rows")

    def _create(self, path: str, body: Mapping[str, Any]) -> str:
        return str(read_key(self.service.post(path, body), "id", str, f"{self.where}: {path}: the reply has no id"))

    def _read(self, found: Any, key: str, path: str) -> list[Any]:
        message = f"{self.where}: {path}: the reply has no list '{key}', as Braintrust's replies do"
        listed: list[Any] = read_key(found, key, list, message)
        return listed


TOOL = "braintrust"


class BraintrustSourceNode(BraintrustConnection, SpooledNode):
    project: str | None = Field(default=None, description="The project: its logs, or what the next keys name in it.")
    experiment: str | None = Field(default=None, description="Read the rows of this experiment of the project.")

    @model_validator(mode="after")
    def _check_choice(self) -> BraintrustSourceNode:
        if (self.project is None) == (self.path is None):
            raise ValueError("name either `project`, or `path` for exported files")
        if self.experiment is not None and self.dataset is not None:
            raise ValueError("name either `experiment` or `dataset`")
        if self.path is not None and (self.experiment or self.dataset):
            raise ValueError("exported files have no experiments or datasets; leave out one of the two")
        return self


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

    def __init__(self, node: BraintrustSourceNode, context: Any) -> None:
        super().__init__(node, context)
        self._link: dict[str, str] = {}
        self._rows = 0

    def connect(self) -> BraintrustApi:
        return BraintrustApi(self.node, TOOL)

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
        time = values.write_time(values.read_time(found.get("created"))) or ""
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
_KINDS: Mapping[str, StepKind] = {"llm": "model", "tool": "tool"}


def make_trace(
    rows: Sequence[Row], places: RecordedPaths, link: Mapping[str, str], project: str | None
) -> Trace | None:
    """The trace of some rows; None if its root has no question, or is not among them.

    `link` says in which experiment or log the rows are.
    """
    root = next((row for row in rows if is_root(row)), None)
    calls = [row for row in rows if _kind(row) == "llm"]
    models = [row for row in calls if row is not root]
    question = None if root is None else places.question(root.get("input"), *(row.get("input") for row in models))
    if root is None or not question:
        return None
    steps = [row for row in rows if row is not root and _kind(row) not in ("score", "scorer", "task", "eval")]
    spoken = () if root.get("error") else (row.get("output") for row in reversed(models))
    answer = places.answer(root.get("output"), *spoken)
    about: dict[str, Any] = values.clean(_open(root, "metadata"))
    tags = values.open_text(root.get("tags"))
    started = values.write_time(values.read_time(root.get("created")))
    others = {**link, "row_id": str(root["id"]), **({"started": started} if started else {})}
    return Trace(
        TraceLink(TOOL, values.read_text(root.get("root_span_id")) or str(root["id"]), project=project, others=others),
        question,
        query_id=str(root["id"]),
        answer=answer,
        documents=_list_documents(steps, root),
        references=places.references(root.get("expected")),
        relevant=questions_and_answers.read_relevant(values.open_text(root.get("expected")), about),
        error=None if answer is not None else _find_error(root),
        seconds=_measure(root),
        input_tokens=_add(calls, root, "prompt_tokens", values.read_count),
        output_tokens=_add(calls, root, "completion_tokens", values.read_count),
        cost=_add(calls, root, "estimated_cost", values.read_number),
        session=values.read_text(about.get("session_id")),
        user=values.read_text(about.get("user_id")),
        model=_find_model(rows),
        finish_reason=find_end(
            root.get("output"), *(row.get(part) for row in calls[-1:] for part in ("output", "metadata"))
        ),
        started=started,
        version=values.find_version(about),
        messages=questions_and_answers.find_messages(root.get("input")),
        steps=tuple(map(_make_step, steps)),
        feedback=tuple(_list_scores(root)),
        metadata={**about, **({"tags": values.clean(tags)} if tags else {})},
        is_open="end" not in _open(root, "metrics"),
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


def _kind(row: Row) -> str:
    return str(_open(row, "span_attributes").get("type", ""))


def _name(row: Row) -> str:
    return values.read_text(_open(row, "span_attributes").get("name")) or ""


def _list_documents(steps: Sequence[Row], root: Row) -> tuple[Document, ...] | None:
    """The documents that the answer names, else those of the outermost steps that retrieve, by their names."""
    found = {_span(row): questions_and_answers.find_documents(row.get("output")) for row in steps if _retrieves(row)}
    parents = {_span(row): next(iter(_parents(row)), None) for row in steps}
    known = questions_and_answers.gather_documents(root.get("output"), found, parents, root.get("metadata"))
    return questions_and_answers.find_contexts(root.get("input")) if known is None else known


def _span(row: Row) -> str:
    return values.read_text(row.get("span_id")) or str(row.get("id"))


def _parents(row: Row) -> list[str]:
    parents = values.open_text(row.get("span_parents"))
    return [str(one) for one in parents] if isinstance(parents, list) else []


def _retrieves(row: Row) -> bool:
    return _kind(row) != "llm" and questions_and_answers.retrieves(_name(row))


def _make_step(row: Row) -> Step:
    retrieves = _retrieves(row)
    return Step(
        "retrieval" if retrieves else _KINDS.get(_kind(row), "other"),
        _name(row),
        values.dump_text(values.open_text(row.get("input"))),
        values.dump_text(values.open_text(row.get("output"))),
        questions_and_answers.find_documents(row.get("output")) if retrieves else None,
        _measure(row),
        _find_error(row),
    )


def _measure(row: Row) -> float | None:
    start, end = (values.read_number(_open(row, "metrics").get(name)) for name in ("start", "end"))
    return None if start is None or end is None or end < start else round(end - start, 6)


def _add(calls: Sequence[Row], root: Row, name: str, read: Callable[[Any], Any]) -> Any:
    """The sum over the calls of models; the root's own number if no call has any."""
    total = add_known(read(_open(row, "metrics").get(name)) for row in calls)
    return read(_open(root, "metrics").get(name)) if total is None else total


def _find_model(rows: Sequence[Row]) -> str | None:
    """The model that the last call names, else the first that any row names before."""
    found = None
    for row in rows:
        if _kind(row) == "llm" or found is None:
            found = values.read_text(_open(row, "metadata").get("model")) or found
    return found


def _find_error(row: Row) -> str | None:
    error = row.get("error")
    return None if error in (None, "", {}) else values.dump_text(error)


def _list_scores(root: Row) -> Iterator[Feedback]:
    """The scores of a row: in one mapping, or, in CSV, each in a column such as `scores.Factuality`."""
    named = dict(_open(root, "scores"))
    named |= {key.removeprefix("scores."): value for key, value in root.items() if key.startswith("scores.")}
    for name, value in named.items():
        if (number := values.read_number(value)) is not None:
            yield Feedback(str(name), number, source="program")
