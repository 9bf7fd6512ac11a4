"""Publishes answers and values as a dataset of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator

from rageval_spec.errors import UsageError
from rageval_spec.exchange.shared.connections import (
    Connection,
    ToolApi,
    describe_key,
    describe_url,
    pair,
    require_key,
)
from rageval_spec.exchange.shared.contracts import Parcel, Target, TargetNode
from rageval_spec.exchange.shared.scores import list_rows
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.values import clean
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation


class WeaveTargetNode(Connection, TargetNode):
    url_variables = ("WF_TRACE_SERVER_URL",)
    usual_url = "https://trace.wandb.ai"
    url: str | None = describe_url("Weave's trace server", url_variables, usual_url)
    api_key: Secret | None = describe_key("API key", "WANDB_API_KEY")
    project: str = Field(description="The project with its entity: `my-team/support`.")
    name: str | None = Field(default=None, description="The name of the dataset. Default: the spec's name.")

    @field_validator("project")
    @classmethod
    def _check_project(cls, text: str) -> str:
        if re.fullmatch(r"[^/\s]+/[^/\s]+", text) is None:
            raise ValueError(f"{text!r} does not name an entity and a project; write both: my-team/support")
        return text


class WeaveApi(ToolApi):
    product = "Weave"

    def __init__(self, node: WeaveTargetNode, where: str) -> None:
        key = require_key(node.api_key, where, "WANDB_API_KEY")
        super().__init__(node.find_url(), where, pair("api", key.reveal()), (key,))


class WeaveTarget(Target[WeaveTargetNode]):
    """Publishes a dataset with a row for each answer; a new version if anything has changed."""

    node_type = WeaveTargetNode
    summary = "Publish answers and values as a dataset of Weave: a row for each answer."
    examples = (
        "export weave --project my-team/support --name nightly",
        "export weave --project my-team/support --dry-run",
    )

    api: WeaveApi
    api_type = WeaveApi

    named = ("project",)

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """One parcel: all rows, because a dataset is one object."""
        rows = [clean(_make_row(sample, values)) for sample, values in list_rows(evaluation)]
        if not rows:
            raise UsageError("the results have no answers to publish")
        name = re.sub(r"[^\w.-]+", "-", self.node.name or evaluation.name).strip("-") or "rageval"
        summary = f"{count_noun(len(rows), 'row')} -> the dataset '{name}'"
        yield Parcel(f"dataset/{name}", {"name": name, "rows": rows}, summary, "dataset")

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write the rows as a table, then the dataset that refers to it."""
        project = self.node.project
        for parcel in parcels:
            name, rows = parcel.body["name"], parcel.body["rows"]
            digest = self._create("/table/create", {"table": {"project_id": project, "rows": rows}})
            value = {
                "_type": "Dataset",
                "name": name,
                "description": None,
                "rows": f"weave:///{project}/table/{digest}",
                "_class_name": "Dataset",
                "_bases": ["Object", "BaseModel"],
            }
            self._create("/obj/create", {"obj": {"project_id": project, "object_id": name, "val": value}})

    def _create(self, path: str, content: Mapping[str, Any]) -> str:
        return str(self.api.read(self.api.service.post(path, content), "digest", path, str))


def _make_row(sample: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An answer with its values and reasons. What is not known is left out."""
    row: dict[str, Any] = {name: sample[name] for name in ("dataset", "system", "query_id", "question", "answer")}
    row |= {"contexts": sample["contexts"], "context_ids": sample["context_ids"]}
    row |= {"reference": next(iter(sample["references"] or ()), None), "error": sample["error"]}
    row |= {name: sample[name] for name in ("seconds", "input_tokens", "output_tokens", "cost")}
    row |= {"scores": {metric: found["value"] for metric, found in values.items()}}
    row |= {"reasons": {metric: found["reason"] for metric, found in values.items() if found["reason"]}}
    return {key: value for key, value in row.items() if value is not None and value != {}}
