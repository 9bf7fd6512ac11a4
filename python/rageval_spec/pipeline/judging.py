"""Describes the judging behind an evaluation: what it cost, and the prompts that judges sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.note import Note
from rageval_spec.pipeline.parts import Parts
from rageval_spec.plugin import ChatModel, Judge
from rageval_spec.plugin.names import names_in
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import JudgingCost, UsedCalibration
    from rageval_spec.data.model_names import Kinship
    from rageval_spec.data.reply_counts import AskedModel, ReplyCounts

_MILLION = 1e6


def count_judging(parts: Parts) -> dict[str, JudgingCost]:
    """What the replies behind the values took, by the model's name in the spec; models that were not asked are absent.

    The cost is at the prices that the models have now.
    """
    chats = {name: model for name, model in parts.asked_models.items() if isinstance(model, ChatModel)}
    costs = {name: _count(name, model) for name, model in chats.items()}
    return {name: cost for name, cost in costs.items() if cost.calls}


def count_replies(parts: Parts) -> dict[str, ReplyCounts]:
    """How often the replies of each chat model could be read, by its name in the spec."""
    found = {name: model.context.budget.usage.replies_of(name) for name, model in parts.asked_models.items()}
    return {name: counts for name, counts in found.items() if counts.questions}


def list_asked_models(parts: Parts) -> list[AskedModel]:
    """What was asked of each chat model in this evaluation, without stored replies; for the store to remember."""
    from rageval_spec.data.reply_counts import AskedModel

    asked: list[AskedModel] = []
    for name, model in parts.asked_models.items():
        now = model.context.budget.usage.asked_now().get(name) if isinstance(model, ChatModel) else None
        if now is not None:
            facts = model.describe()
            called, url = facts.get("model", name), facts.get("url", "")
            asked.append(AskedModel(called, url, now.calls, now.seconds, now.replies))
    return asked


def _count(name: str, model: ChatModel[Any]) -> JudgingCost:
    from rageval_spec.data.evaluation import JudgingCost

    used, price = model.context.budget.usage.of(name), model.price
    cost = None
    if price is not None and used.input_tokens is not None and used.output_tokens is not None:
        cost = (used.input_tokens * price[0] + used.output_tokens * price[1]) / _MILLION
    return JudgingCost(used.calls, used.input_tokens, used.output_tokens, cost)


def digest_prompts(parts: Parts) -> dict[str, str]:
    """The sha256 of the prompts of every judge that a metric asks, directly or through other judges.

    The keys are the names of the judge and the prompt: "strict.verify".
    """
    asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
    return {
        f"{name}.{prompt}": digest
        for name, judge in parts.judges.items()
        if name in asked
        for prompt, digest in judge.prompt_digests().items()
    }


def describe_calibrations(parts: Parts) -> dict[str, UsedCalibration]:
    """The calibration of every judge that has one and that a metric asks, directly or through other judges."""
    from rageval_spec.judging.calibrated import CalibratedJudge

    asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
    return {
        name: judge.describe()
        for name, judge in parts.judges.items()
        if name in asked and isinstance(judge, CalibratedJudge)
    }


class SelfJudging(NamedTuple):
    """Judges whose model is the one that wrote the answers, or of the same family.

    Attributes:
        system, judges: their names in the spec.
        generator, model: what the models are called.
    """

    system: str
    generator: str
    judges: tuple[str, ...]
    model: str
    kinship: Kinship

    def __str__(self) -> str:
        """The fact in a sentence."""
        if self.kinship == "same":
            how = f"{self.model}, the model that writes the answers of '{self.system}'"
        else:
            how = f"{self.model}, a model of the same family as {self.generator}, which writes those of '{self.system}'"
        names = list_names([f"'{judge}'" for judge in self.judges])
        who = f"the judge {names} asks" if len(self.judges) == 1 else f"the judges {names} ask"
        return f"{who} {how}; models favour answers like their own"


def find_self_judging(parts: Parts) -> Iterator[SelfJudging]:
    """The judges behind metrics whose model is related to the generator of a system, in the order of the spec."""
    generators = [(name, one.generator) for name, one in parts.systems.items() if one.generator is not None]
    if not generators:
        return
    from rageval_spec.data.model_names import compare_models

    asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
    judges: dict[str, list[str]] = {}
    for name, judge in parts.judges.items():
        for model in dict.fromkeys(_name_model(parts, model) for model in names_in(judge.node, "models")):
            if name in asked:
                judges.setdefault(model, []).append(name)
    for system, generator in generators:
        own = _name_model(parts, generator)
        for model, names in judges.items():
            if kinship := compare_models(own, model):
                yield SelfJudging(system, own, tuple(names), model, kinship)


def note_self_judging(parts: Parts) -> list[Note]:
    """A warning for each judge that judges its own model's answers, and a note for those of its family."""
    return [
        Note("self_judging", str(found), system=found.system, level="warning" if found.kinship == "same" else "note")
        for found in find_self_judging(parts)
    ]


def _name_model(parts: Parts, name: str) -> str:
    """What a model is called: by its maker if the name is a block of the spec, else the name."""
    model = parts.models.get(name)
    called = None if model is None else getattr(model.node, "model", None)
    return called if isinstance(called, str) else name


def list_asked(judges: Iterable[Judge[Any]]) -> set[str]:
    """The names of judges, and of those that they ask in turn."""
    waiting, asked = list(judges), set[str]()
    while waiting:
        judge = waiting.pop()
        if judge.context.name not in asked:
            asked.add(judge.context.name)
            waiting += [judge.context.judge(name) for name in names_in(judge.node, "judges")]
    return asked
