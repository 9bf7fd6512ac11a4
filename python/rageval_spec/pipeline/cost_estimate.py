"""Estimates what an evaluation would take, before anything is paid for.

That is the calls to models and systems, and the seconds that judges on this machine need, from how much they would
read and how fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.data import tables
from rageval_spec.data.findings import Estimate, Reader, Tokens
from rageval_spec.data.samples import Sample
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import asdict, dataclass, field
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.question_selection import queries_to_ask
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.values.answer_values import brief_judges, list_usable
from rageval_spec.pipeline.values.sample_tables import build_samples, take_step
from rageval_spec.plugin import ChatModel, Speed, System
from rageval_spec.plugin.budget import CallLimits
from rageval_spec.wording import count_noun

WITHOUT_MODEL = Speed(500_000)
"""A judge without a model looks up about so many tokens a second."""
_LONG = 100
"""From so many seconds on, times are given in minutes, and from so many minutes on in hours."""


@dataclass(frozen=True, slots=True)
class LocalReads:
    """What one model, or one judge without a model, would read on this machine: texts, pairs or samples.

    `guess` is what the speed is if it was not measured: `a guess from the model's size`, or why there is none.
    """

    reader: Reader
    count: int
    tokens: int
    speed: Speed | None
    guess: str = ""

    @property
    def seconds(self) -> float | None:
        """About how long it takes; None if the speed is not known."""
        return None if self.speed is None else self.tokens / self.speed.tokens_per_second

    def render(self) -> str:
        """`about 40 s (1,200 pairs at 30 a second, measured here on 2026-11-22)`."""
        what = count_noun(self.count, self.reader.unit)
        if not self.count:
            return "nothing to read"
        if self.speed is None or self.seconds is None:
            return f"unknown: {self.guess} ({what}, about {self.tokens:,} tokens)"
        rate = self.count / self.seconds if self.seconds else 0.0
        source = f"measured here on {self.speed.measured_on}" if self.speed.measured_on else self.guess
        return f"{_describe_seconds(self.seconds)} ({what} at {_round(rate)} a second, {source})"

    def to_json(self) -> dict[str, Any]:
        speed = {"tokens_per_second": None, "measured_on": None} if self.speed is None else self.speed._asdict()
        amounts = {"count": self.count, "tokens": self.tokens, "seconds": self.seconds}
        return {"name": self.reader.name, "unit": self.reader.unit, **amounts, **speed}


def _find_speed(parts: SpecPlugins, reader: Reader, texts: Mapping[str, int]) -> tuple[Speed | None, str]:
    model = parts.models.get(reader.name)
    if model is None:
        return WITHOUT_MODEL, "a guess; it needs no model"
    if not texts:
        return None, ""
    if (speed := model.find_speed()) is not None:
        return speed, f"a guess from the model's size; measure it with: rageval-spec models bench {model.called}"
    if model.node.use != "onnx":
        return None, f"`use: {model.node.use}` has no measured speed"
    return None, "its size is not known" if model.inputs() else f"'{model.called}' is not on this machine yet"


def _describe_seconds(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    for unit, size in (("s", 1), ("min", 60)):
        if seconds < _LONG * size:
            return f"about {_round(seconds / size)} {unit}"
    return f"about {_round(seconds / 3600)} h"


def _round(number: float) -> str:
    """A number with two significant digits, but whole from 10 on."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


PLACEHOLDER_ANSWER, PLACEHOLDER_CONTEXT = (
    "A sentence of an answer that is yet to come. " * 12,
    "A supposed context. " * 50,
)
"""Placeholders for missing answers: 540 characters, with three contexts of 1,000 each. No two are equal."""
_HINT = "judges in steps may ask less; unreadable replies are retried"
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """The calls that one model would get; `cost` is in US dollars, None if the price is not known."""

    model: str
    calls: int
    tokens: Tokens
    cost: float | None

    def to_json(self) -> dict[str, Any]:
        tokens = {"input_tokens": self.tokens.input, "output_tokens": self.tokens.output}
        return {"model": self.model, "calls": self.calls, **tokens, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """The calls that are still to be made.

    Attributes:
        questions: the number of queries that each system would be asked, over all datasets.
        reused: for each system whose stored answers would be reused, where they come from.
        least: with `stopping:`, what is to be made if every gate is decided after the first questions; else None.
        asked_completely: with `stopping:`, why all questions of a dataset are asked, for each of which they are.
    """

    models: tuple[ModelCalls, ...] = ()
    questions: Mapping[str, int] | None = None
    reused: Mapping[str, str] | None = None
    least: ExpectedCalls | None = None
    asked_completely: Mapping[str, str] | None = None
    local: tuple[LocalReads, ...] = ()
    limits: CallLimits = field(default_factory=CallLimits)

    @property
    def cost(self) -> float | None:
        """The total in US dollars; None if the price of a model that would be called is not known."""
        costs = [model.cost for model in self.models if model.calls]
        return None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None)

    def render(self) -> str:
        """The estimate as lines of text; "" if there is nothing to ask."""
        questions, reused = self.questions or {}, self.reused or {}
        least = self if self.least is None else self.least
        names = [*(model.model for model in self.models), *questions, *reused]
        width = max(map(len, names), default=0)
        lines = []
        for name in dict.fromkeys((*questions, *reused)):
            fewest_questions, most = (least.questions or {}).get(name, 0), questions.get(name, 0)
            told = f"{fewest_questions:,} to " if fewest_questions < most else ""
            source = f" (reuses {reused[name]})" if name in reused else ""
            lines.append(f"  {name:<{width}}  {told}{count_noun(most, 'question')}{source}")
        fewest = {model.model: model for model in least.models}
        lines += [
            f"  {model.model:<{width}}  {_describe(fewest.get(model.model, model), model)}" for model in self.models
        ]
        if not lines:
            return self._render_local()
        hint = f" ({_HINT})" if any(model.calls for model in self.models) else ""
        when = ", until every gate is decided" if self.least is not None else ""
        why = [f"all questions of {name} are asked: {reason}" for name, reason in (self.asked_completely or {}).items()]
        return "\n".join([f"to ask{when}{hint}:", *lines, *why, *self._list_exceeded(), ""]) + self._render_local()

    def _list_exceeded(self) -> Iterator[str]:
        """The limits on calls at which the evaluation will stop, each a sentence."""
        least = self if self.least is None else self.least
        needed = {
            "systems": (self.limits.systems, sum((least.questions or {}).values())),
            "models": (self.limits.models, sum(model.calls for model in least.models)),
        }
        for whom, (most, calls) in needed.items():
            if most is not None and calls > most:
                allowed = f"limits.max_calls allows {count_noun(most, 'call')} to {whom}"
                yield f"{allowed}: the evaluation stops there, and another one continues"

    def _render_local(self) -> str:
        if not self.local:
            return ""
        when = ", if all questions are asked" if self.least is not None else ""
        width = max(len(one.reader.name) for one in self.local)
        lines = [f"  {one.reader.name:<{width}}  {one.render()}" for one in self.local]
        return "\n".join([f"judges on this machine{when}:", *lines, ""])

    def to_json(self) -> dict[str, Any]:
        content = {
            "models": [model.to_json() for model in self.models],
            "questions": dict(self.questions or {}),
            "reused": dict(self.reused or {}),
            "cost": self.cost,
            "local": [one.to_json() for one in self.local],
            "max_calls": asdict(self.limits),
        }
        if self.least is None:
            return content
        return content | {"least": self.least.to_json(), "asked_completely": dict(self.asked_completely or {})}


def expect(
    parts: SpecPlugins,
    limit: int | None = None,
    choose: Callable[[Collection], Collection] = lambda asked: asked,
    others: Sequence[SpecPlugins] = (),
) -> ExpectedCalls:
    """Estimate the calls of an evaluation. Reads datasets and stored answers, and makes no calls.

    A token counts as four characters. Calls that depend on replies that do not exist yet are estimated with placeholder
    answers. `choose` returns the questions that are asked, from all of a dataset. `others` are the plugins of variants
    of the spec that are evaluated as well; equal systems are asked once.
    """
    estimate, questions, known = Estimate(), dict[str, int](), dict[str, int]()
    met = set[str]()
    pairs = [(own, dataset) for own in (parts, *others) for dataset in own.datasets.values()]
    for own, dataset in pairs:
        metrics = own.answer_metrics
        brief_judges(metrics)
        estimate |= dataset.estimate()
        answering = {name: s for name, s in own.systems.items() if s.answers_on(dataset.context.name)}
        asked = choose(queries_to_ask(dataset.foresee(), limit)) if answering else None
        for name, system in answering.items():
            assert asked is not None, "there are systems to ask"
            files = [file.path for file in system.inputs_for(dataset.context.name)]
            identity = str((dataset.context.name, system.content(), files))
            if identity in met:
                continue
            samples, missing = _add_placeholders(system, asked, len(met))
            met.add(identity)
            if missing:
                questions[name] = questions.get(name, 0) + missing
            known[name] = known.get(name, 0) + len(samples) - missing
            for metric in metrics.values():
                estimate |= metric.estimate(list_usable(metric, samples))
    reused = {name: parts.systems[name].describe_reuse(count) for name, count in known.items()}
    return ExpectedCalls(
        tuple(add_up(parts, estimate)),
        questions,
        {name: of for name, of in reused.items() if of},
        local=tuple(
            LocalReads(reader, len(texts), sum(texts.values()), *_find_speed(parts, reader, texts))
            for reader, texts in estimate.reads.items()
        ),
    )


def _add_placeholders(system: System[Any], asked: Collection, place: int) -> tuple[Sequence[Sample], int]:
    """Samples with the stored answers, and with placeholders for the rest; and the number of placeholders.

    Those of systems in different places differ, as their answers will.
    """
    of = f" of {place}" if place else ""
    assert asked.queries is not None, "queries_to_ask refuses a collection without"
    known = take_step(system.node, system.find_answers(asked))
    missing = asked.queries.filter(~asked.queries["query_id"].is_in(known["query_id"].to_list()))
    if not system.can_be_asked:
        missing = missing.clear()
    rows = [
        {
            "query_id": query_id,
            "answer": f"{query_id}{of}: {PLACEHOLDER_ANSWER}",
            "contexts": [f"{query_id}{of}, {number}: {PLACEHOLDER_CONTEXT}" for number in range(3)],
        }
        for query_id in missing["query_id"]
    ]
    supposed = tables.answers_table(rows).select(tables.ANSWERS)
    answers = pl.concat([known.select(tables.ANSWERS), supposed], how="vertical_relaxed")
    return build_samples(asked, answers), missing.height


def add_up(parts: SpecPlugins, estimate: Estimate) -> Iterator[ModelCalls]:
    """The calls to each model that is asked, with their cost; chat models without calls too."""
    for name, model in parts.asked_models.items():
        calls = estimate.calls.get(name, {})
        if calls or isinstance(model, ChatModel):
            tokens = Tokens(sum(t.input for t in calls.values()), sum(t.output for t in calls.values()))
            price = model.price if isinstance(model, ChatModel) else None
            cost = None if price is None else (tokens.input * price[0] + tokens.output * price[1]) / _MILLION
            yield ModelCalls(name, len(calls), tokens, cost if calls else 0.0)


def _describe(least: ModelCalls, most: ModelCalls) -> str:
    """`12 calls, about 900 tokens in and 300 out, about 0.01 USD`; each number is a range if the two differ."""
    if not most.calls:
        return "no calls"
    fewest, price = least.cost or 0.0, "price unknown"
    if most.cost is not None:
        price = f"about {_describe_range(f'{fewest:,.2f}', f'{most.cost:,.2f}')} USD"
    calls = count_noun(most.calls, "call")
    calls = f"{least.calls:,} to {calls}" if least.calls < most.calls else calls
    sent, received = (
        _describe_range(f"{getattr(least.tokens, way):,}", f"{getattr(most.tokens, way):,}")
        for way in ("input", "output")
    )
    return f"{calls}, about {sent} tokens in and {received} out, {price}"


def _describe_range(least: str, most: str) -> str:
    return most if least == most else f"{least} to {most}"
