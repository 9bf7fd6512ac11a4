"""Resolves `bands:` to a scale for each metric, and checks the words that gates and `diagnosis:` use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rageval_spec.data.bands import SCALES, BandScale, find_scale, make_scale
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.plugin import Metric
from rageval_spec.spec.blocks.block_validation import CheckedSpec
from rageval_spec.spec.blocks.gates import GateNode, NamedMetric
from rageval_spec.spec.text.places import KeyPath, TextPlace, list_hint, nearest_place, quote


@dataclass(frozen=True)
class _Named:
    """A metric's name in tables, its plugin and the names under which a scale can know it."""

    name: str
    plugin: Metric[Any]

    @property
    def known_as(self) -> tuple[str, ...]:
        return self.plugin.name, self.plugin.node.use, self.name


def resolve_bands(
    checked: CheckedSpec, metrics: Sequence[NamedMetric], places: Mapping[KeyPath, TextPlace]
) -> tuple[dict[str, BandScale], list[Diagnostic]]:
    """The scale of each metric that has one, by the metric's name, and diagnostics."""
    if checked.spec is None or checked.spec.bands is None:
        return {}, []
    plugins: dict[int, Any] = {id(block.node): block.plugin for block in checked.of("metrics")}
    named = {metric.name: _Named(metric.name, plugins[id(metric.node)]) for metric in metrics}
    bands = checked.spec.bands
    if isinstance(bands, str):
        return _cover(bands, named, places)
    scales: dict[str, BandScale] = {}
    diagnostics: list[Diagnostic] = []
    for name, wanted in bands.items():
        place = _place(places, ("bands", name))
        if name not in named:
            if "metrics" not in checked.incomplete:
                hint = suggest(name, [*named]) or list_hint([*named])
                diagnostics.append(place.diagnose(f"the spec has no metric {quote(name)}", "dangling", hint))
        elif isinstance(wanted, str):
            scale = find_scale(wanted, named[name].known_as)
            if scale is None:
                diagnostics.append(_explain_uncovered(place, wanted, name))
            else:
                scales[name] = scale
        elif not wanted:
            hint = "write words with their bounds, such as {good: 0.8, poor: 0.5}"
            diagnostics.append(place.diagnose(f"the bands of {quote(name)} are empty", "value", hint))
        elif len({*wanted.values()}) < len(wanted):
            hint = "give each word its own bound, or remove one"
            diagnostics.append(place.diagnose(f"two bands of {quote(name)} have the same bound", "value", hint))
        else:
            lower = named[name].plugin.higher_is_better is False
            scales[name] = make_scale(wanted, lower_is_better=lower, worst="too high" if lower else "too low")
    return scales, diagnostics


def _cover(
    scale: str, named: Mapping[str, _Named], places: Mapping[KeyPath, TextPlace]
) -> tuple[dict[str, BandScale], list[Diagnostic]]:
    found = {name: of for name, metric in named.items() if (of := find_scale(scale, metric.known_as)) is not None}
    if found or not named:
        return found, []
    message = f"the scale {quote(scale)} covers none of the spec's metrics"
    hint = f"it covers {', '.join(SCALES[scale])}"
    return {}, [_place(places, ("bands",)).diagnose(message, "value", hint)]


def _explain_uncovered(place: TextPlace, scale: str, metric: str) -> Diagnostic:
    message = f"the scale {quote(scale)} does not cover {quote(metric)}"
    hint = f"it covers {', '.join(SCALES[scale])}; write your own words: {{good: 0.8, poor: 0.5}}"
    return place.diagnose(message, "value", hint)


def check_levels(
    gates: Sequence[tuple[int, GateNode]], bands: Mapping[str, BandScale], places: Mapping[KeyPath, TextPlace]
) -> Iterator[Diagnostic]:
    """Check the words of `at_least`, for gates whose metric exists."""
    for index, gate in gates:
        if gate.at_least is None:
            continue
        place = _place(places, ("gates", index, "at_least"))
        scale = bands.get(gate.metric)
        if scale is None:
            message = f"{quote(gate.metric)} has no bands, so {quote(gate.at_least)} means nothing"
            yield place.diagnose(
                message, "gate", f"add it to 'bands:', or use 'min' ({', '.join(SCALES)} are built in)"
            )
            continue
        words = [level.word for level in scale.levels if level.bound is not None]
        if gate.at_least not in words:
            message = f"{quote(gate.at_least)} is not a level of {quote(gate.metric)} that a gate can require"
            yield place.diagnose(message, "gate", suggest(gate.at_least, words) or list_hint(words))


def check_diagnosis(
    checked: CheckedSpec, metrics: Sequence[NamedMetric], places: Mapping[KeyPath, TextPlace]
) -> Iterator[Diagnostic]:
    """Check the names and thresholds of `diagnosis:`."""
    if checked.spec is None or "diagnosis" not in checked.spec.model_fields_set:
        return
    node, names = checked.spec.diagnosis, [metric.name for metric in metrics]
    for key in ("retrieval", "correctness", "faithfulness"):
        name = getattr(node, key)
        if name is not None and name not in names and "metrics" not in checked.incomplete:
            hint = suggest(name, names) or list_hint(names)
            message = f"the spec has no metric {quote(name)}"
            yield _place(places, ("diagnosis", key)).diagnose(message, "dangling", hint)
    if node.wrong_below > node.right_from:
        message = f"'wrong_below' ({node.wrong_below:g}) is above 'right_from' ({node.right_from:g})"
        hints = {
            "wrong_below": f"set 'right_from' too, to {node.wrong_below:g} or more",
            "right_from": f"set 'wrong_below' too, to {node.right_from:g} or less",
        }
        keys = [key for key in hints if key in node.model_fields_set]
        hint = hints[keys[0]] if len(keys) == 1 else "swap the two"
        yield _place(places, ("diagnosis", keys[0])).diagnose(message, "value", hint)


def _place(places: Mapping[KeyPath, TextPlace], path: KeyPath) -> TextPlace:
    place = nearest_place(places, path)
    assert place is not None, "every key of a spec that was read has a place"
    return place
