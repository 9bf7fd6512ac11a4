"""The contracts of plugins: read this page before you write one.

A plugin is one file, `<section>/<word>.py`. It holds a node (the YAML block: keys, defaults, bounds, descriptions; the
JSON Schema is generated from it), a class with this node in the brackets of its base class, `Judge[MyNode]`, and
`PLUGIN = TheClass`. The class is built with its validated node and a `Context`. It reads nothing until one of its
methods is called, and it does not import plugins of other sections.

The contracts of judges are in `plugin`, with what all plugins share; those of labels in `dataset`, those of engines in
`report`; each other kind has a module of its name. Import all names from `rageval_spec.plugin`.
"""

from rageval_spec.plugin.block_names import JudgeName, LabelsName, ModelName, SystemName
from rageval_spec.plugin.dataset import Dataset, DatasetNode, Labels, LabelsNode
from rageval_spec.plugin.metric import (
    AnswerMetric,
    Measured,
    Measurement,
    Metric,
    MetricGroup,
    MetricInfo,
    MetricNode,
    RankingMetric,
    TableMetric,
)
from rageval_spec.plugin.model import (
    ChatModel,
    EmbeddingModel,
    Embeddings,
    PairModel,
    PairScores,
    TokenModel,
    TokenTags,
    note_truncated,
    note_truncated_texts,
)
from rageval_spec.plugin.notifier import Notifier, NotifierNode
from rageval_spec.plugin.plugin import (
    Context,
    Judge,
    JudgeNode,
    Model,
    ModelNode,
    Node,
    Plugin,
    Role,
    Speed,
    count_roughly,
    digest_text,
)
from rageval_spec.plugin.report import Answer, Engine, EngineNode, Partition, Report, ReportNode
from rageval_spec.plugin.system import Answering, GeneratingNode, Retrieval, System, SystemNode
from rageval_spec.progress import Progress, ignore_progress
from rageval_spec.store.disk import InputFile, digest_content
from rageval_spec.store.store import Answers, NoAnswers

__all__ = [
    "Answer", "AnswerMetric", "Answering", "Answers", "ChatModel", "Context", "Dataset", "DatasetNode",
    "EmbeddingModel", "Embeddings", "Engine", "EngineNode", "GeneratingNode", "InputFile", "Judge", "JudgeName",
    "JudgeNode", "Labels", "LabelsName", "LabelsNode", "Measured", "Measurement", "Metric", "MetricGroup", "MetricInfo",
    "MetricNode", "Model", "ModelName", "ModelNode", "NoAnswers", "Node", "Notifier",
    "NotifierNode", "PairModel", "PairScores", "Partition",
    "Plugin", "Progress", "RankingMetric", "Report", "ReportNode", "Retrieval", "Role", "Speed", "System", "SystemName",
    "SystemNode", "TableMetric", "TokenModel", "TokenTags", "count_roughly", "digest_content", "digest_text",
    "ignore_progress", "note_truncated", "note_truncated_texts",
]  # fmt: skip
