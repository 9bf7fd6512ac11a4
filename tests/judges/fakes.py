"""An embedding model whose cosines can be computed by hand, and judges with scripted findings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Estimate, Failed, Finding, Tokens
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.plugin import Context, EmbeddingModel, Embeddings, Judge, JudgeNode, Model, ModelName, ModelNode, Role

FAITHFULNESS = Criterion("faithfulness", "support", "Is everything that the answer says supported by the contexts?")
PRECISION = Criterion("context_precision", "usefulness", "Is it useful?", text="contexts", against="question")
RUBRIC = Criterion("tone", "grade", "Is the answer polite?", scale=(1, 5))


class WordModel(EmbeddingModel[ModelNode]):
    """Counts words: the cosine of two texts of distinct words is shared / sqrt(words of one * words of the other)."""

    def __init__(self, name: str = "words", longest: int = 100) -> None:
        super().__init__(ModelNode(use="onnx"), Context(name))
        self.longest = longest
        self.calls: list[tuple[list[str], Role]] = []
        self.words: dict[str, int] = {}

    is_calibrated = True

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return "cosine"

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.calls.append((list(texts), role))
        vectors = np.zeros((len(texts), 200), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, self.words.setdefault(word, len(self.words))] += 1
        return Embeddings(vectors, np.array([len(text.split()) > self.longest for text in texts]))


class ScriptedNode(JudgeNode):
    """A scripted judge."""

    repeat: int = 0
    threshold: float | None = None


class ModelledNode(ScriptedNode):
    """A scripted judge that names a model."""

    model: ModelName


class UnrepeatableNode(JudgeNode):
    """A scripted judge without a model, which says the same each time."""


Said = Finding | Failed | float | None


class Scripted(Judge[Any]):
    """Gives each query what the script has for it: a score, a finding, a failure, or an error to raise."""

    def __init__(
        self,
        name: str,
        script: Mapping[str, Said] | Exception,
        abilities: Sequence[Ability] = ("support", "grade"),
        model: str | None = None,
        node: JudgeNode | None = None,
        notes: Sequence[Note] = (),
    ) -> None:
        own = ModelledNode(use="scripted", model=model) if model else ScriptedNode(use="scripted")
        super().__init__(node or own, Context(name))
        self.script = script
        self.able = frozenset(abilities)
        self.model = model
        self.notes = tuple(notes)
        self.asked: list[list[str]] = []
        self.seen: list[Sample] = []
        self.expected: list[str] = []

    @property
    def abilities(self) -> frozenset[Ability]:
        return self.able

    def expect(self, criteria: Sequence[Criterion]) -> None:
        self.expected = [criterion.name for criterion in criteria]

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        self.asked.append([sample.query_id for sample in samples])
        self.seen += samples
        if isinstance(self.script, Exception):
            raise self.script
        return Assessment([self._say(sample.query_id) for sample in samples], self.notes)

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        self.asked.append([text for _, text in texts])
        return [Failed("unreadable") if "bad" in text else (f"{self.context.name}: {text}",) for _, text in texts]

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        if self.model is None:
            return Estimate()
        return Estimate({self.model: {f"{criterion.name} {sample.query_id}": Tokens(90, 10) for sample in samples}})

    def _say(self, query_id: str) -> Finding | Failed:
        assert not isinstance(self.script, Exception)
        said = self.script[query_id]
        if isinstance(said, (Finding, Failed)):
            return said
        return Finding(said, reason="nothing to judge" if said is None else None)


def samples_for(*query_ids: str, **parts: Any) -> list[Sample]:
    parts = {"answer": "It is red.", "contexts": ("The sky is blue.",), **parts}
    return [Sample(query_id, f"What is {query_id}?", **parts) for query_id in query_ids]


def context_of(*plugins: Judge[Any] | Model[Any], name: str = "tested") -> Context:
    """A context whose judges and models are these; each of them gets this context too."""
    models = {plugin.context.name: plugin for plugin in plugins if isinstance(plugin, Model)}
    judges = {plugin.context.name: plugin for plugin in plugins if isinstance(plugin, Judge)}
    return Context(name, models=models, judges=judges)


def scores_of(assessment: Assessment) -> list[float | str | None]:
    return [found.reason if isinstance(found, Failed) else found.score for found in assessment.findings]


def finding_of(assessment: Assessment, place: int = 0) -> Finding:
    found = assessment.findings[place]
    assert isinstance(found, Finding)
    return found


def claim(score: float, verdict: Any = None, text: str = "c") -> Claim:
    return Claim(text, score, verdict)
