"""A small set of plugins, so that these tests do not depend on the plugins of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from rageval_spec import registry
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.labels import Label
from rageval_spec.data.tables import Collection
from rageval_spec.errors import UsageError
from rageval_spec.plugin import (
    Dataset,
    DatasetNode,
    InputFile,
    JudgeName,
    Labels,
    LabelsNode,
    Metric,
    MetricNode,
    Model,
    ModelName,
    ModelNode,
    Node,
    Plugin,
    Report,
    ReportNode,
    System,
    SystemName,
    SystemNode,
)
from rageval_spec.plugin.secrets import Secret


class FolderNode(DatasetNode):
    path: str = Field(description="The folder.")
    split: str = Field(default="test", min_length=1, description="Which judgements.")
    limit: int | None = Field(default=None, ge=1, le=1000, description="So many queries.")


class Folder(Dataset[FolderNode]):
    node_type = FolderNode

    def inputs(self) -> Sequence[InputFile]:
        return (InputFile(self.context.resolve(self.node.path), ("path",), kind="folder"),)

    def open(self) -> Collection:
        return Collection(self.context.name)


class RankingNode(SystemNode):
    path: str | dict[str, str] = Field(description="The file; with several datasets, a file for each.")
    format: Literal["auto", "trec", "json"] = Field(default="auto", description="How it is written.")


class Ranking(System[RankingNode]):
    node_type = RankingNode

    def inputs_for(self, dataset: str) -> Sequence[InputFile]:
        if isinstance(self.node.path, str):
            return (InputFile(self.context.resolve(self.node.path), ("path",)),)
        if dataset not in self.node.path:
            raise UsageError(f"no file for the dataset '{dataset}'")
        return (InputFile(self.context.resolve(self.node.path[dataset]), ("path", dataset)),)

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class Fields(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: float = Field(default=1.0, gt=0, description="Weight of titles.")
    text: float = Field(default=1.0, gt=0, description="Weight of texts.")


class SparseNode(SystemNode):
    k1: float = Field(default=0.9, ge=0, description="Saturation.")
    b: float = Field(default=0.4, ge=0, le=1, description="Length normalization.")
    depth: int = Field(default=1000, ge=1, description="So many documents.")
    stemmer: Literal["english", "none"] | None = Field(default=None, description="How words are stemmed.")
    lowercase: bool = Field(default=True, description="Whether case is ignored.")
    fields: Fields = Field(default=Fields(), description="Weights of fields.")
    stop_words: Literal["english"] | list[str] = Field(default="english", description="Words to leave out.")


class Sparse(System[SparseNode]):
    node_type = SparseNode

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class RemoteNode(SystemNode):
    url: str = Field(pattern="^https?://", description="Where it answers.")
    timeout: float = Field(default=30, gt=0, description="Seconds.")
    api_key: Secret | None = Field(default=None, description="The key; may be `${secret:VAR}`.")
    headers: dict[str, Secret] = Field(default={}, description="Headers; may be `${secret:VAR}`.")


class Remote(System[RemoteNode]):
    node_type = RemoteNode

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class DenseNode(SystemNode):
    model: ModelName = Field(default="minilm", description="The embedding model.")
    depth: int = Field(default=1000, ge=1, description="So many documents.")


class Dense(System[DenseNode]):
    node_type = DenseNode
    known_as = ("embeddings",)

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class HybridNode(SystemNode):
    systems: list[SystemName] = Field(min_length=2, description="The systems to fuse.")
    weights: dict[SystemName, float] = Field(default={}, description="What each system counts.")


class Hybrid(System[HybridNode]):
    node_type = HybridNode
    known_as = ("fusion",)

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class RerankNode(SystemNode):
    system: SystemName = Field(description="The system whose first documents are ranked anew.")
    model: ModelName = Field(description="The cross-encoder.")
    top: int = Field(default=100, ge=1, description="So many documents of each query.")


class Rerank(System[RerankNode]):
    node_type = RerankNode

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        return pl.DataFrame()


class OnnxNode(ModelNode):
    model: str = Field(min_length=1, description="The id on the hub, a folder, or `minilm`.")
    precision: Literal["fp32", "int8"] = Field(default="fp32", description="How numbers are held.")
    max_length: int | None = Field(default=None, ge=8, description="Tokens of a text.")


class Onnx(Model[OnnxNode]):
    node_type = OnnxNode

    def inputs(self) -> Sequence[InputFile]:
        if self.node.model == "minilm" or self.node.model.startswith("."):
            path = self.context.resolve(Path("data/support") / self.node.model)
            return (InputFile(path, ("model",), hint="pip install 'rageval-spec[onnx]'"),)
        return ()


class HttpNode(ModelNode):
    url: str = Field(pattern="^https?://", description="Where it answers.")
    model: str = Field(description="What it is called there.")
    api_key: Secret | None = Field(default=None, description="The key; may be `${secret:VAR}`.")


class Http(Model[HttpNode]):
    node_type = HttpNode


class BinaryNode(Node):
    model: ModelName = Field(description="The model that is asked.")


class Binary(Plugin[BinaryNode]):
    node_type = BinaryNode


class CascadeNode(Node):
    steps: list[JudgeName] = Field(min_length=1, description="The judges, the cheapest first.")


class Cascade(Plugin[CascadeNode]):
    node_type = CascadeNode


class PeopleNode(LabelsNode):
    path: str = Field(description="Where.")


class People(Labels[PeopleNode]):
    node_type = PeopleNode

    def read(self) -> Sequence[Label]:
        return ()


class FaithfulNode(MetricNode):
    judge: JudgeName = Field(description="Which judge.")
    models: dict[str, ModelName] = Field(default={}, description="The model of a language.")


class Faithful(Metric[FaithfulNode]):
    node_type = FaithfulNode

    @property
    def name(self) -> str:
        return "faithful"


class TerminalNode(ReportNode):
    width: int = Field(default=100, ge=20, description="Columns.")


class Terminal(Report[TerminalNode]):
    node_type = TerminalNode

    def render(self, evaluation: Evaluation) -> bytes:
        return b""


class PageNode(ReportNode):
    theme: Literal["light", "dark"] = Field(description="Colours.")


class Page(Report[PageNode]):
    node_type = PageNode

    def render(self, evaluation: Evaluation) -> bytes:
        return b""


_load: Callable[[Any, str], Any] = registry.load

PLUGINS: dict[str, dict[str, Any]] = {
    "datasets": {"folder": Folder},
    "systems": {
        "dense": Dense,
        "hybrid": Hybrid,
        "ranking": Ranking,
        "remote": Remote,
        "rerank": Rerank,
        "sparse": Sparse,
    },
    "models": {"http": Http, "onnx": Onnx},
    "judges": {"binary": Binary, "cascade": Cascade},
    "labels": {"people": People},
    "metrics": {
        "faithful": Faithful,
        **{word: _load("metrics", word) for word in ("map", "ndcg", "precision", "recall")},
    },
    "reports": {"page": Page, "terminal": Terminal},
    "engines": {},
    "notifiers": {},
}


def words(section: str) -> tuple[str, ...]:
    return tuple(sorted(PLUGINS[section]))


def builtin_words(section: str) -> frozenset[str]:
    return frozenset(PLUGINS[section])


def load(section: str, word: str) -> Any:
    if word not in PLUGINS[section]:
        raise UsageError(f"{section}: no '{word}'")
    return PLUGINS[section][word]
