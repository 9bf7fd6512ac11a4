"""What the numbers of a metric mean: its settings and code, and the judges, prompts and models behind it.

They are read from what an evaluation recorded, so that two evaluations can be compared, key by key, whenever they
were made. What one of the two did not record is not compared. Digests of the data, the metric's definition and its
judge decide whether two numbers can be compared.

It also finds which judges asked the model that wrote the answers, or one of its family.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from pydantic_core import to_jsonable_python

from rageval_spec import registry
from rageval_spec.data.chat import Kinship, compare_models
from rageval_spec.data.outcomes import BaselineChange, ChangedPart
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context, Judge, Metric, Model, Node, Plugin, RankingMetric
from rageval_spec.plugin.block_names import list_references
from rageval_spec.spec.blocks.spec_node import RankingNode, Spec
from rageval_spec.wording import list_names

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rageval_spec.data.datasets import Fingerprint
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.plugin.metric import DataPart
    from rageval_spec.statistics.mean_intervals import ValueRange


_Settings: TypeAlias = Mapping[str, Any]
_SettingsByName: TypeAlias = Mapping[str, _Settings]
_EVERYTHING: frozenset[DataPart] = frozenset({"references", "qrels"})
_NOT_MEANING = {"as", "use", "prompts", "calibration", "show_as"}
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
        judges, models: the settings of each judge, and what identifies each model behind the metric, by name.
        prompts: the digest of each prompt of these judges: "strict.verify".
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
    used = list(recorded.blocks.list_used(metric.node))
    judges = [one.name for one in used if one.section == "judges"]
    models = [one.name for one in used if one.section == "models"]
    settings = _list_settings(metric)
    if isinstance(metric, RankingMetric):
        ranking = recorded.ranking.model_dump(mode="json", exclude={_TIE_RANGE})
        settings |= {f"ranking.{key}": value for key, value in ranking.items()}
    prompts = {key: digest for key, digest in evaluation.provenance.prompts.items() if key.rpartition(".")[0] in judges}
    return Definition(
        metric.reads,
        settings,
        evaluation.provenance.implementations.get(name),
        {judge: _list_settings(recorded.judges[judge]) for judge in judges if judge in recorded.judges},
        prompts,
        {model: _identify(model, evaluation, recorded) for model in models if model in evaluation.provenance.models},
        {
            name: f"{one.score}:{one.digest}"
            for name, one in evaluation.provenance.calibrations.items()
            if name in judges
        },
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
    found = {**settings, **evaluation.provenance.models[name]}
    return {key: value for key, value in found.items() if key not in _PLACES}


def list_changes(now: Definition, before: Definition) -> Iterator[BaselineChange]:
    """What changed in the meaning of a metric: its settings and code, its judges, their prompts, and the models."""
    if keys := _find_different(now.settings, before.settings):
        yield BaselineChange(
            "metric", f"the metric's settings changed: {_describe_values(keys, now.settings, before.settings)}"
        )
    if None not in (now.code, before.code) and now.code != before.code:
        yield BaselineChange("metric", "the metric's code or files changed")
    yield from _list_block_changes("judge", now.judges, before.judges)
    names = sorted({*now.calibrations, *before.calibrations})
    if changed := [name for name in names if now.calibrations.get(name) != before.calibrations.get(name)]:
        yield BaselineChange("judge", f"the calibration of the judge changed: {list_names(changed)}")
    prompts = [key for key in now.prompts if key in before.prompts and now.prompts[key] != before.prompts[key]]
    if prompts:
        noun = "prompt" if len(prompts) == 1 else "prompts"
        yield BaselineChange("prompt", f"the judge's {noun} changed: {list_names(prompts)}")
    if now.models and before.models:
        yield from _list_block_changes("model", now.models, before.models)


def _list_block_changes(part: ChangedPart, now: _SettingsByName, before: _SettingsByName) -> Iterator[BaselineChange]:
    """How the judges or the models behind a metric changed; a block that only has another name did not."""
    if [*now.values()] == [*before.values()]:
        return
    if [*now] != [*before]:
        yield BaselineChange(part, f"the {part} changed: {_list_or_none(before)} → {_list_or_none(now)}")
        return
    different = {name: _find_different(now[name], before[name]) for name in now}
    told = [f"{name} ({_describe_values(keys, now[name], before[name])})" for name, keys in different.items() if keys]
    if told:
        yield BaselineChange(part, f"the {part} changed: {list_names(told)}")


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


PARTS = ("question", "reference", "judgements")
"""The parts of a query that `Fingerprint` holds."""
WEIGHTS = "weights"
"""What a dataset's weights are called among its parts; a dataset without them does not have it."""
_DIGEST_LENGTH = 16


def take_meaning(evaluation: Evaluation, spec: Spec | None) -> dict[str, Any]:
    """The digests of an evaluation: `data`, by dataset and part, and `metrics`, by metric: "definition" and "judge".

    What is not known is absent: the parts that no system or metric uses, and all metrics of an evaluation without a
    `spec` that did not record its own. A metric's "judge" covers the judges, models and prompts that it uses; a metric
    that uses none has no such digest.
    """
    fingerprints = evaluation.fingerprints.datasets
    data = {dataset: dict(_digest_data(of)) for dataset, of in fingerprints.items()}
    for dataset, design in evaluation.question_designs.items():
        if design.weights is not None:
            data.setdefault(dataset, {})[WEIGHTS] = _digest(dict(design.weights))
    if spec is None:
        blocks = (read_recorded_spec(evaluation) or RecordedSpec()).blocks
    else:
        blocks = _Blocks({one.name: one.node for one in spec.metrics}, spec.judges, spec.models, spec.ranking)
    metrics = {name: _digest_metric(node, evaluation, blocks) for name, node in blocks.metrics.items()}
    return {"data": data, "metrics": metrics}


class UsedBlock(NamedTuple):
    """A judge or a model behind a block; its node is None if it is not known."""

    section: str
    name: str
    node: Node | None


class _Blocks(NamedTuple):
    """The blocks of a spec that give metrics their meaning, by name, and how rankings are read."""

    metrics: Mapping[str, Node]
    judges: Mapping[str, Node]
    models: Mapping[str, Node]
    ranking: RankingNode

    def list_used(self, node: BaseModel, seen: set[tuple[str, str]] | None = None) -> Iterator[UsedBlock]:
        """Each judge and model behind a block once, in the order of first use."""
        seen = set() if seen is None else seen
        for section, name, *_ in list_references(node):
            if section in ("systems", "labels") or (section, name) in seen:
                continue
            seen.add((section, name))
            inner = (self.judges if section == "judges" else self.models).get(name)
            yield UsedBlock(section, name, inner)
            if inner is not None:
                yield from self.list_used(inner, seen)


def _digest_data(fingerprints: Mapping[str, Fingerprint]) -> Iterator[tuple[str, str]]:
    for part in PARTS:
        found = [(query_id, getattr(of, part)) for query_id, of in sorted(fingerprints.items())]
        if any(digest is not None for _, digest in found):
            yield part, _digest(found)


def _digest_metric(node: Any, evaluation: Evaluation, blocks: _Blocks) -> dict[str, str]:
    content = node.model_dump(mode="json", exclude={"as_", "show_as"})
    if issubclass(registry.load("metrics", node.use), RankingMetric):
        content = [content, blocks.ranking.model_dump(mode="json", exclude={"tie_range"})]
    digests = {"definition": _digest(content)}
    if used := [*_describe_used(blocks.list_used(node), evaluation)]:
        digests["judge"] = _digest(used)
    return digests


def _describe_used(used: Iterable[UsedBlock], evaluation: Evaluation) -> Iterator[Any]:
    for section, name, node in used:
        content = None if node is None else node.model_dump(mode="json")
        if section == "models":
            yield [section, evaluation.provenance.models.get(name) or content or name]
        elif node is not None:
            prompts = {key: of for key, of in evaluation.provenance.prompts.items() if key.startswith(f"{name}.")}
            yield [section, content, prompts]


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


@dataclass(frozen=True)
class RecordedSpec:
    """The blocks that give an evaluation's numbers their meaning.

    Blocks whose plugin is not installed, or that this version cannot read, are absent.

    Attributes:
        metrics: by their names in tables.
        ranking: how rankings were read.
    """

    metrics: Mapping[str, Metric[Any]] = field(default_factory=dict)
    judges: Mapping[str, Judge[Any]] = field(default_factory=dict)
    models: Mapping[str, Model[Any]] = field(default_factory=dict)
    ranking: RankingNode = field(default_factory=RankingNode)

    @property
    def blocks(self) -> _Blocks:
        sections = (self.metrics, self.judges, self.models)
        metrics, judges, models = ({name: one.node for name, one in of.items()} for of in sections)
        return _Blocks(metrics, judges, models, self.ranking)


def read_recorded_spec(evaluation: Evaluation) -> RecordedSpec | None:
    """The blocks of the spec that an evaluation recorded; None if it recorded none, as those of earlier versions."""
    recorded = evaluation.provenance.spec
    if not recorded or len(recorded.get("metrics", ())) != len(evaluation.metrics):
        return None
    ranking = RankingNode()
    with suppress(ValueError):
        ranking = RankingNode.model_validate(recorded.get("ranking", {}))
    return RecordedSpec(
        _build_all("metrics", dict(zip(evaluation.metrics, recorded["metrics"], strict=True))),
        _build_all("judges", recorded.get("judges", {})),
        _build_all("models", recorded.get("models", {})),
        ranking,
    )


def read_ranges(evaluation: Evaluation) -> dict[str, ValueRange]:
    """The lowest and the highest possible value of each metric, by name, as far as the evaluation tells.

    Results of earlier versions have them only through the spec that they recorded.
    """
    recorded = None if evaluation.ranges else read_recorded_spec(evaluation)
    told = {} if recorded is None else {name: metric.bounds for name, metric in recorded.metrics.items()}
    return {**told, **evaluation.ranges}


def _build_all(section: registry.Section, blocks: Mapping[str, Any]) -> dict[str, Any]:
    built = {name: _build(section, name, content) for name, content in blocks.items()}
    return {name: plugin for name, plugin in built.items() if plugin is not None}


def _build(section: registry.Section, name: str, content: Any) -> Any:
    """The plugin of a block, or None. It opens nothing, and its secrets are not revealed."""
    with suppress(RagevalError, ValueError, TypeError, KeyError):
        plugin = registry.load(section, content["use"])
        node = plugin.node_type.model_validate(_drop_defaults(plugin.node_type, content))
        return plugin(node, Context(name, Path()))
    return None


def _drop_defaults(node_type: type[BaseModel], content: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the spec may have written: blocks are recorded with all, and some keys exclude one another."""
    defaults = {
        field.alias or name: to_jsonable_python(field.get_default(call_default_factory=True))
        for name, field in node_type.model_fields.items()
        if not field.is_required()
    }
    return {key: value for key, value in content.items() if key not in defaults or value != defaults[key]}


def find_generators(evaluation: Evaluation) -> dict[str, str]:
    """What the model that wrote a system's answers is called, by system, where the spec named it."""
    recorded = read_recorded_spec(evaluation)
    systems = evaluation.provenance.spec.get("systems", {})
    named = {name: str(node["generator"]) for name, node in systems.items() if node.get("generator")}
    return {name: _name_model(recorded, generator) for name, generator in named.items() if name in evaluation.systems}


def find_kinships(evaluation: Evaluation, metric: str) -> dict[str, Kinship | None]:
    """How the models behind a metric's judge are related to each system's generator; the closest one counts.

    Systems without a known generator are absent; all are, if no model is known behind the metric.
    """
    recorded = read_recorded_spec(evaluation)
    if recorded is None or metric not in recorded.metrics:
        return {}
    used = recorded.blocks.list_used(recorded.metrics[metric].node)
    models = [_name_model(recorded, one.name) for one in used if one.section == "models"]
    if not models:
        return {}
    return {system: _find_closest(generator, models) for system, generator in find_generators(evaluation).items()}


def _find_closest(generator: str, models: list[str]) -> Kinship | None:
    found = {compare_models(generator, model) for model in models}
    return next((kinship for kinship in get_args(Kinship) if kinship in found), None)


def _name_model(recorded: RecordedSpec | None, name: str) -> str:
    model = None if recorded is None else recorded.models.get(name)
    return name if model is None else model.called
