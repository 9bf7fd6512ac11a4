"""Resolves `bands:` to a scale for each metric, and checks the words that gates and `diagnosis:` use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rageval_spec.data.bands import SCALES, BandScale, find_scale, make_scale
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.spec.blocks.block_validation import CheckedSpec
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.text.places import Places, list_hint, quote


def resolve_bands(checked: CheckedSpec, places: Places) -> tuple[dict[str, BandScale], list[Diagnostic]]:
    """The scale of each metric that has one, by the metric's name, and diagnostics."""
    bands = None if checked.spec is None else checked.spec.bands
    if bands is None:
        return {}, []
    known_as = {name: (metric.name, metric.node.use, name) for name, metric in checked.metrics.items()}
    if isinstance(bands, str):
        found = {name: scale for name, names in known_as.items() if (scale := find_scale(bands, names)) is not None}
        if found or not known_as:
            return found, []
        message = f"the scale {quote(bands)} covers none of the spec's metrics"
        return {}, [places.diagnose(("bands",), message, "wrong-value", f"it covers {', '.join(SCALES[bands])}")]
    scales: dict[str, BandScale] = {}
    diagnostics: list[Diagnostic] = []
    for name, wanted in bands.items():
        place = places.nearest(("bands", name))
        if name not in known_as:
            if "metrics" not in checked.incomplete:
                hint = suggest(name, [*known_as]) or list_hint([*known_as])
                diagnostics.append(place.diagnose(f"the spec has no metric {quote(name)}", "unknown-name", hint))
        elif isinstance(wanted, str):
            scale = find_scale(wanted, known_as[name])
            if scale is None:
                message = f"the scale {quote(wanted)} does not cover {quote(name)}"
                hint = f"it covers {', '.join(SCALES[wanted])}; write your own words: {{good: 0.8, poor: 0.5}}"
                diagnostics.append(place.diagnose(message, "wrong-value", hint))
            else:
                scales[name] = scale
        elif not wanted:
            hint = "write words with their bounds, such as {good: 0.8, poor: 0.5}"
            diagnostics.append(place.diagnose(f"the bands of {quote(name)} are empty", "wrong-value", hint))
        elif len({*wanted.values()}) < len(wanted):
            hint = "give each word its own bound, or remove one"
            diagnostics.append(place.diagnose(f"two bands of {quote(name)} have the same bound", "wrong-value", hint))
        else:
            lower = checked.metrics[name].higher_is_better is False
            scales[name] = make_scale(wanted, lower_is_better=lower, worst="too high" if lower else "too low")
    return scales, diagnostics


def check_levels(
    gates: Sequence[tuple[int, GateNode]], bands: Mapping[str, BandScale], places: Places
) -> Iterator[Diagnostic]:
    for index, gate in gates:
        if gate.at_least is None:
            continue
        place = places.nearest(("gates", index, "at_least"))
        scale = bands.get(gate.metric)
        if scale is None:
            message = f"{quote(gate.metric)} has no bands, so {quote(gate.at_least)} means nothing"
            hint = f"add it to 'bands:', or use 'min' ({', '.join(SCALES)} are built in)"
            yield place.diagnose(message, "wrong-gate", hint)
            continue
        words = [level.word for level in scale.levels if level.bound is not None]
        if gate.at_least not in words:
            message = f"{quote(gate.at_least)} is not a level of {quote(gate.metric)} that a gate can require"
            yield place.diagnose(message, "wrong-gate", suggest(gate.at_least, words) or list_hint(words))


def check_diagnosis(checked: CheckedSpec, places: Places) -> Iterator[Diagnostic]:
    if checked.spec is None or "diagnosis" not in checked.spec.model_fields_set:
        return
    node, names = checked.spec.diagnosis, [*checked.metrics]
    for key in ("retrieval", "correctness", "faithfulness"):
        name = getattr(node, key)
        if name is not None and name not in names and "metrics" not in checked.incomplete:
            hint = suggest(name, names) or list_hint(names)
            yield places.diagnose(("diagnosis", key), f"the spec has no metric {quote(name)}", "unknown-name", hint)
    if node.wrong_below > node.right_from:
        message = f"'wrong_below' ({node.wrong_below:g}) is above 'right_from' ({node.right_from:g})"
        hints = {
            "wrong_below": f"set 'right_from' too, to {node.wrong_below:g} or more",
            "right_from": f"set 'wrong_below' too, to {node.right_from:g} or less",
        }
        keys = [key for key in hints if key in node.model_fields_set]
        hint = hints[keys[0]] if len(keys) == 1 else "swap the two"
        yield places.diagnose(("diagnosis", keys[0]), message, "wrong-value", hint)
