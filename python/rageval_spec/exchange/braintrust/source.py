"""Reads experiments, logs and datasets of Braintrust, from its API or from exported files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from rageval_spec.errors import DataError
from rageval_spec.exchange.braintrust.connection import BraintrustConnection
from rageval_spec.exchange.shared.spooled import Entry, Rows, SpooledNode, SpooledSource
from rageval_spec.exchange.shared.windows import parse_moment

if TYPE_CHECKING:
    from rageval_spec.data.trace import Trace
    from rageval_spec.endpoints.service import Service
    from rageval_spec.exchange.braintrust.api import Api

TOOL = "braintrust"


class BraintrustSourceNode(BraintrustConnection, SpooledNode):
    """Which experiment, logs or dataset to read from Braintrust."""

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
    """Rows of Braintrust, put together to traces; rows of its datasets."""

    node_type = BraintrustSourceNode
    summary = "Read experiments, logs and datasets of Braintrust, from its API or from exported files."
    examples = (
        "import braintrust --project support --since 7d -o traces.jsonl",
        "import braintrust --project support --experiment nightly -o answers.jsonl",
        "import braintrust --project support --dataset golden -o golden.jsonl",
        "import braintrust experiment.json -o answers.jsonl",
    )

    def __init__(self, node: BraintrustSourceNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._service: Service | None = None
        self._link: dict[str, str] = {}
        self._rows = 0

    def fetch(self) -> Iterator[Iterable[tuple[str, Any]]]:
        """The rows of the experiment or of the project's logs, until those that are older than the window."""
        api, where, project = self._api(), TOOL, self.node.project or ""
        kind: Any = "project_logs" if self.node.experiment is None else "experiment"
        self._link = {"object": kind, "object_id": api.find(kind, project, self.node.experiment)}
        for number, page in enumerate(api.rows(kind, self._link["object_id"]), 1):
            yield [(f"{where}: page {number}, row {i}", row) for i, row in enumerate(page, 1)]
            if page and all(map(self._is_before, page)):
                return

    def read_items(self, dataset: str) -> Iterator[Trace | None]:
        """The rows of a dataset; None for those without a question."""
        from rageval_spec.exchange.braintrust.traces import read_row

        api, places = self._api(), self.node.places
        for page in api.rows("dataset", api.find("dataset", self.node.project or "", dataset)):
            for row in page:
                if not isinstance(row, Mapping):
                    raise DataError(f"{TOOL}: dataset '{dataset}': a row is not an object")
                yield read_row(row, places, dataset, self.node.project)

    def prepare(self, place: str, row: Mapping[str, Any]) -> Entry | None:
        """A row under its root span; a row of a plain export stands for itself."""
        from rageval_spec.exchange.shared.payloads import clean, read_text, read_time, write_time

        found = {key: value for key, value in row.items() if value is not None and value != ""}
        if "input" not in found and "id" not in found:
            raise DataError(f"{place}: there is no 'input' and no 'id' in this row, as Braintrust's rows have")
        self._rows += 1
        identity = read_text(found.get("id")) or f"row-{self._rows}"
        time = write_time(read_time(found.get("created"))) or ""
        # Groups without a time leave in the descending order of their names: the first row of a file comes first.
        group = read_text(found.get("root_span_id")) or f"row {10**12 - self._rows}"
        return Entry(group, identity, time, clean({**found, "id": identity}))

    def assemble(self, rows: Rows) -> Trace | None:
        """The trace of some rows."""
        from rageval_spec.exchange.braintrust.traces import make_trace

        return make_trace(rows, self.node.places, self._link, self.node.project)

    def is_cut(self, rows: Rows) -> bool:
        """Whether the root is missing."""
        from rageval_spec.exchange.braintrust.traces import is_root

        return not any(map(is_root, rows))

    def close(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()

    def _api(self) -> Api:
        from rageval_spec.exchange.braintrust.api import Api
        from rageval_spec.exchange.braintrust.connection import connect

        if self._service is None:
            self._service = connect(self.node, TOOL)
        return Api(self._service, TOOL)

    def _is_before(self, row: Any) -> bool:
        """Whether a row is so much older than the window that all rows after it are older, too."""
        from rageval_spec.exchange.shared.payloads import read_time

        if self.node.since is None or not isinstance(row, Mapping):
            return False
        made = read_time(row.get("created"))
        return made is not None and made < parse_moment(self.node.since, self.now) - timedelta(hours=1)
