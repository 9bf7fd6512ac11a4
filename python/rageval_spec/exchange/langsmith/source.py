"""Reads traces and datasets from LangSmith's API, or from exported files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.errors import DataError
from rageval_spec.exchange.langsmith.connection import LangSmithConnection
from rageval_spec.exchange.shared.spooled import Entry, Rows, SpooledNode, SpooledSource

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.exchange.langsmith.api import Api
    from rageval_spec.exchange.langsmith.connection import Paths

TOOL = "langsmith"


class LangSmithSourceNode(LangSmithConnection, SpooledNode):
    """Which traces, or which dataset, to read from LangSmith."""

    project: str | None = Field(default=None, description="Read the traces of this tracing project.")
    feedback: bool = Field(default=True, description="Whether to read what was said of the answers.")

    @model_validator(mode="after")
    def _check_choice(self) -> LangSmithSourceNode:
        if [self.project, self.dataset, self.path].count(None) != 2:
            raise ValueError("name one of these: `project`, `dataset`, or `path` for exported files")
        return self


class LangSmithSource(SpooledSource[LangSmithSourceNode]):
    """Runs of LangSmith, put together to traces; examples of its datasets."""

    node_type = LangSmithSourceNode
    summary = "Read traces and datasets of LangSmith, from its API or from exported files."
    examples = (
        "import langsmith --project support --since 7d -o traces.jsonl",
        "import langsmith --dataset golden -o golden.jsonl",
        "import langsmith runs.jsonl -o traces.jsonl",
    )
    loose = "feedback row"

    def __init__(self, node: LangSmithSourceNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._paths: Paths | None = None
        self._trace_of: dict[str, str] = {}
        self._examples = 0

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """Everything in the window: runs first, then the feedback on those that have any."""
        api, where = self._api(), TOOL
        for number, page in enumerate(api.runs(api.find_project(self.node.project or ""), self.window), 1):
            yield [(f"{where}: page {number}, row {i}", row) for i, row in enumerate(page, 1)]
            said = [row for row in page if isinstance(row, Mapping) and row.get("feedback_stats")]
            self._trace_of |= {str(row.get("id")): str(row.get("trace_id") or row.get("id")) for row in said}
        if self.node.feedback and self._trace_of:
            yield ((f"{where}: feedback", row) for row in api.feedback([*self._trace_of]))

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        """The examples of a dataset; None for those without a question."""
        from rageval_spec.exchange.langsmith.traces import read_example

        api, places = self._api(), self.node.places
        for row in api.examples(api.find_dataset(dataset)):
            if not isinstance(row, Mapping):
                raise DataError(f"{TOOL}: dataset '{dataset}': an example is not an object")
            yield read_example(row, places, dataset)

    def prepare(self, place: str, row: Mapping[str, Any]) -> Entry | None:
        """A run or feedback under its trace; in files, an example stands for itself."""
        from rageval_spec.exchange.langsmith.traces import is_feedback
        from rageval_spec.exchange.shared.payloads import clean, read_text, read_time, write_time

        found = {key: value for key, value in row.items() if value is not None and value != ""}
        identity = read_text(found.get("id"))
        if is_feedback(found):
            run_id = read_text(found.get("run_id")) or ""
            trace_id = read_text(found.get("trace_id")) or self._trace_of.get(run_id, run_id)
            return None if not trace_id else Entry(trace_id, f"feedback:{identity or place}", "", clean(found))
        if "run_type" not in found:
            # Groups without a time leave in the descending order of their names: the first example comes first.
            self._examples += 1
            return Entry(f"example {10**12 - self._examples}", "example", "", clean(found))
        if identity is None:
            raise DataError(f"{place}: there is no 'id' in this run")
        time = write_time(read_time(found.get("start_time")))
        return Entry(read_text(found.get("trace_id")) or identity, f"run:{identity}", time or "", clean(found))

    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some runs, or the question of an example."""
        from rageval_spec.exchange.langsmith.traces import make_trace, read_example

        if "run_type" not in rows[0] and len(rows) == 1:
            return read_example(rows[0], self.node.places, self.node.path or "")
        return make_trace(rows, self.node.places, self.node.project)

    def is_step(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is more than feedback."""
        from rageval_spec.exchange.langsmith.traces import is_feedback

        return not is_feedback(row)

    def is_cut(self, rows: Rows) -> bool:
        """Whether the run is missing that all others belong to."""
        from rageval_spec.exchange.langsmith.traces import has_root

        return not has_root(rows)

    def close(self) -> None:
        """Close the connections."""
        if self._paths is not None:
            self._paths.service.close()

    def _api(self) -> Api:
        from rageval_spec.exchange.langsmith.api import Api
        from rageval_spec.exchange.langsmith.connection import connect

        if self._paths is None:
            self._paths = connect(self.node, TOOL)
        return Api(self._paths, TOOL)
