"""What the numbers of a metric mean: its settings and code, and the judges, prompts and models behind it.

They are read from what an evaluation recorded, so that two evaluations can be compared whenever they were made. What
one of the two did not record is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.data.comparability import Change, ChangedPart
from rageval_spec.errors import RagevalError
from rageval_spec.history.recorded_spec import RecordedSpec, read_recorded_spec
from rageval_spec.plugin import RankingMetric
from rageval_spec.plugin.names import list_references
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.plugin import Plugin
    from rageval_spec.plugin.metric import DataPart

_Settings: TypeAlias = Mapping[str, Any]
_Blocks: TypeAlias = Mapping[str, _Settings]
_EVERYTHING: frozenset[DataPart] = frozenset({"references", "qrels"})
_NOT_MEANING = {"as", "use", "prompts", "calibration"}
"""Keys of a block that are compared in another way, or that no value depends on."""
_PLACES = {"url", "base_url", "torch", "sentence-transformers", "transformers"}
"""What a model says about where and by which libraries it ran."""
_TIE_RANGE = "tie_range"
_MOST_TEXT = 40


@dataclass(frozen=True)
class Definition:
    """What gives one metric's numbers their meaning.

    Attributes:
        reads: the data of a dataset that the metric reads, besides questions.
        settings: the metric's own, and how rankings were read.
        code: the digest of the metric's version and files; None if it was not recorded.
        judges: the settings of each judge behind the metric, by name.
        prompts: the digest of each prompt of these judges: "strict.verify".
        models: what identifies each model behind the metric, by name.
        calibrations: what each of these judges takes from its calibration, and the digest of the file.
    """

    reads: frozenset[DataPart] = _EVERYTHING
    settings: _Settings = field(default_factory=dict)
    code: str | None = None
    judges: Mapping[str, _Settings] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, _Settings] = field(default_factory=dict)
    calibrations: Mapping[str, str] = field(default_factory=dict)


def read_definitions(evaluation: Evaluation) -> dict[str, Definition] | None:
    """The definition of each metric, by name; None if the evaluation did not record its spec.

    A metric whose plugin is not installed is absent.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None:
        return None
    return {name: _define(name, evaluation, recorded) for name in recorded.metrics}


def _define(name: str, evaluation: Evaluation, recorded: RecordedSpec) -> Definition:
    metric = recorded.metrics[name]
    used = list(recorded.list_used(metric.node))
    judges = [name for section, name in used if section == "judges"]
    models = [name for section, name in used if section == "models"]
    settings = _list_settings(metric)
    if isinstance(metric, RankingMetric):
        ranking = recorded.ranking.model_dump(mode="json", exclude={_TIE_RANGE})
        settings |= {f"ranking.{key}": value for key, value in ranking.items()}
    prompts = {key: digest for key, digest in evaluation.prompts.items() if key.rpartition(".")[0] in judges}
    return Definition(
        metric.reads,
        settings,
        evaluation.implementations.get(name),
        {judge: _list_settings(recorded.judges[judge]) for judge in judges if judge in recorded.judges},
        prompts,
        {model: _identify(model, evaluation, recorded) for model in models if model in evaluation.models},
        {name: f"{one.score}:{one.digest}" for name, one in evaluation.calibrations.items() if name in judges},
    )


def _list_settings(plugin: Plugin[Any]) -> dict[str, Any]:
    """A block's settings without the names of other blocks: those can be renamed and stay what they are."""
    settings = plugin.node.model_dump(mode="json", by_alias=True)
    named = {found.path[0] for found in list_references(plugin.node)}
    return {"use": plugin.node.use} | {
        key: value for key, value in settings.items() if key not in named and key not in _NOT_MEANING
    }


def _identify(name: str, evaluation: Evaluation, recorded: RecordedSpec) -> dict[str, Any]:
    """What a model said of itself, and its settings; not its address, its price or how many calls run at once."""
    settings: dict[str, Any] = {}
    if name in recorded.models:
        with suppress(RagevalError, OSError):
            settings = recorded.models[name].content()["node"]
    found = {**settings, **evaluation.models[name]}
    return {key: value for key, value in found.items() if key not in _PLACES}


def list_changes(now: Definition, before: Definition) -> Iterator[Change]:
    """What changed in the meaning of a metric: its settings and code, its judges, their prompts, and the models."""
    if keys := _find_different(now.settings, before.settings):
        yield Change(
            "metric", f"the metric's settings changed: {_describe_values(keys, now.settings, before.settings)}"
        )
    if None not in (now.code, before.code) and now.code != before.code:
        yield Change("metric", "the metric's code or files changed")
    yield from _list_block_changes("judge", now.judges, before.judges)
    if now.calibrations != before.calibrations:
        names = {*now.calibrations, *before.calibrations}
        changed = sorted(name for name in names if now.calibrations.get(name) != before.calibrations.get(name))
        yield Change("judge", f"the calibration of the judge changed: {list_names(changed)}")
    prompts = [key for key in now.prompts if key in before.prompts and now.prompts[key] != before.prompts[key]]
    if prompts:
        noun = "prompt" if len(prompts) == 1 else "prompts"
        yield Change("prompt", f"the judge's {noun} changed: {list_names(prompts)}")
    if now.models and before.models:
        yield from _list_block_changes("model", now.models, before.models)


def _list_block_changes(part: ChangedPart, now: _Blocks, before: _Blocks) -> Iterator[Change]:
    """How the judges or the models behind a metric changed; a block that only has another name did not."""
    if [*now.values()] == [*before.values()]:
        return
    if [*now] != [*before]:
        yield Change(part, f"the {part} changed: {_list_or_none(before)} → {_list_or_none(now)}")
        return
    different = {name: _find_different(now[name], before[name]) for name in now}
    told = [f"{name} ({_describe_values(keys, now[name], before[name])})" for name, keys in different.items() if keys]
    if told:
        yield Change(part, f"the {part} changed: {list_names(told)}")


def _find_different(now: _Settings, before: _Settings) -> list[str]:
    """The keys of both with other values; another plugin has other keys, so then `use` says it all."""
    found = [key for key in now if key in before and now[key] != before[key]]
    return ["use"] if "use" in found else found


def _describe_values(keys: Sequence[str], now: _Settings, before: _Settings) -> str:
    """`normalize squad → none`; without the values where they are long or not plain."""
    return ", ".join(
        f"{key} {before.get(key)} → {now.get(key)}" if _is_short(now.get(key), before.get(key)) else key for key in keys
    )


def _is_short(*values: Any) -> bool:
    return all(isinstance(one, (str, int, float)) and len(str(one)) <= _MOST_TEXT for one in values)


def _list_or_none(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
