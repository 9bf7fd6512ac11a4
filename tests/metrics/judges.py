"""Judges and models for tests of answer metrics: texts are claims separated by `|`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rageval_spec import registry
from rageval_spec.data.findings import (
    Ability,
    Assessment,
    Claim,
    Criterion,
    Estimate,
    Failed,
    Finding,
    Questions,
    Tokens,
    read_part,
)
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.plugin import (
    AnswerMetric,
    Context,
    EmbeddingModel,
    Embeddings,
    Judge,
    JudgeNode,
    Measurement,
    ModelNode,
    Role,
)

ALL: frozenset[Ability] = frozenset({"support", "usefulness", "grade", "claims", "questions", "entities"})
Scripted = Callable[[Sample], Finding | Failed | None]


def split(text: str) -> tuple[str, ...]:
    """The claims of a text."""
    return tuple(claim.strip() for claim in text.split("|") if claim.strip())


class RuleJudge(Judge[JudgeNode]):
    """A claim is supported if a source has it too; a text is useful if it shares a claim with its target.

    `say` can decide instead. Texts that contain "broken" fail. `asked` records the questions in order.
    """

    def __init__(
        self,
        name: str = "rule",
        abilities: frozenset[Ability] = ALL,
        say: Scripted = lambda sample: None,
        questions: Mapping[str, Questions | Failed] | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        super().__init__(JudgeNode(use="rule"), Context(name))
        self._abilities, self.say, self.written, self.notes = abilities, say, questions or {}, notes
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.criteria: list[Criterion] = []

    @property
    def abilities(self) -> frozenset[Ability]:
        return self._abilities

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        assert criterion.kind in self.abilities
        assert samples, "nobody is asked about nothing"
        self.asked.append((criterion.name, tuple(sample.query_id for sample in samples)))
        self.criteria.append(criterion)
        return Assessment([self.say(sample) or self._find(criterion, sample) for sample in samples], self.notes)

    def _find(self, criterion: Criterion, sample: Sample) -> Finding | Failed:
        texts, sources = read_part(sample, criterion.text), read_part(sample, criterion.against)
        if any("broken" in text for text in (*texts, *sources)):
            return Failed("the reply is no JSON", "Sure! Here")
        known = {claim for source in sources for claim in split(source)}
        if criterion.kind == "usefulness":
            verdicts = [(text, bool(known & {*split(text)})) for text in texts]
        else:
            verdicts = [(claim, claim in known) for text in texts for claim in split(text)]
        claims = [Claim(text, float(met), "supported" if met else "not_enough_info") for text, met in verdicts]
        if not claims:
            return Finding(None, reason=f"the {criterion.text} makes no claim", claimless=True)
        return Finding(sum(claim.score for claim in claims) / len(claims), tuple(claims))

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        self.asked.append(("claims", tuple(text for _, text in texts)))
        return [Failed("no claims came") if "broken" in text else split(text) for _, text in texts]

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        self.asked.append((f"{count} questions", tuple(answers)))
        return [self.written[answer] for answer in answers]

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        self.asked.append(("entities", tuple(texts)))
        return [Failed("no entities came") if "broken" in text else split(text) for text in texts]

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:
        texts = [
            (criterion.kind, *read_part(sample, criterion.text), ">", *read_part(sample, criterion.against))
            for sample in samples
        ]
        return _count(" ".join(text) for text in texts)

    def estimate_writing(
        self, ability: Literal["claims", "questions", "entities"], texts: Sequence[tuple[str, str]], count: int = 1
    ) -> Estimate:
        return _count(f"{ability} {count} {question} {text}" for question, text in texts)


def _count(texts: Any) -> Estimate:
    return Estimate({"chat": {text: Tokens(1, 1) for text in texts}})


def calls(estimate: Estimate) -> list[str]:
    """The questions that would be asked."""
    return [key for model in estimate.calls.values() for key in model]


class TableModel(EmbeddingModel[ModelNode]):
    """Looks up the vectors of texts in a table; `asked` records the texts in order."""

    def __init__(self, vectors: Mapping[str, Sequence[float]], cut: Sequence[str] = ()) -> None:
        super().__init__(ModelNode(use="table"), Context("minilm"))
        self.vectors, self.cut = vectors, cut
        self.asked: list[tuple[Role, tuple[str, ...]]] = []

    @property
    def similarity(self) -> Literal["cosine", "dot"]:
        return "cosine"

    def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        self.asked.append((role, tuple(texts)))
        vectors = np.array([self.vectors[text] for text in texts], np.float32)
        return Embeddings(vectors, np.array([text in self.cut for text in texts]))


def metric(
    word: str, judge: Judge[Any] | None = None, embedder: TableModel | None = None, **keys: Any
) -> AnswerMetric[Any]:
    """The metric of a block `{use: word, judge: rule, ...}`; keys that Python reserves end in an underscore."""
    named = {} if judge is None else {"judge": judge.context.name}
    cls = registry.load("metrics", word)
    node = cls.node_type.model_validate({"use": word, **named, **{key.rstrip("_"): keys[key] for key in keys}})
    judges = {} if judge is None else {judge.context.name: judge}
    built: AnswerMetric[Any] = cls(
        node, Context(word, judges=judges, models={} if embedder is None else {"minilm": embedder})
    )
    return built


def sample(query_id: str = "q", question: str = "?", **parts: Any) -> Sample:
    """A sample; `reference` is short for one reference."""
    if "reference" in parts:
        parts["references"] = (parts.pop("reference"),)
    return Sample(query_id, question, **parts)


def measure(built: AnswerMetric[Any], *samples: Sample) -> list[Measurement]:
    """The measurements of samples that have everything the metric needs; checks the metric first."""
    assert built.check() is None
    assert not any(one.lacks(part) for one in samples for part in built.needs)
    return list(built.compute(samples).measurements)


def value_of(built: AnswerMetric[Any], one: Sample) -> float | None:
    """The value of one sample; fails if it is not scored."""
    (measurement,) = measure(built, one)
    assert measurement.status == "scored", measurement
    return measurement.value
