"""Finds the plugin that the `use:` of a block names, and explains unknown words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import MetricInfo, Node, Plugin
from rageval_spec.spec.blocks.error_explanation import describe, place_of
from rageval_spec.spec.blocks.spec_node import DEFAULT_MODELS, LISTED_SECTIONS, SINGLE_SECTIONS
from rageval_spec.spec.text.places import TextPlace, cut, quote
from rageval_spec.spec.text.yaml_tree import YamlEntry, YamlMapping, YamlNode, YamlScalar

_PERCENTILE = compile_later(r"(?P<word>\w+?)(?:@p?|_p)(?P<place>\d+)|p(?P<first>\d+)_(?P<later>\w+)")
"""How other tools and a slip write `latency@p95`: `latency@95`, `latency_p95`, `p95_latency`."""
_NEAR = 0.7
"""How alike a word and the one that was meant are (1 for equal) if the block is to be checked as that one's."""


def correct_word(section: registry.Section, block: YamlMapping) -> YamlMapping | None:
    """A block whose word is misspelt, with the word that it nearly is; None if it is near to none."""
    from difflib import get_close_matches

    use = block.entries["use"]
    text = use.value.value if isinstance(use.value, YamlScalar) else None
    near = get_close_matches(_fold(str(text)), registry.words(section), n=1, cutoff=_NEAR)
    if not near:
        return None
    meant = YamlEntry(use.key_place, YamlScalar(use.value.place, near[0], near[0]))
    return YamlMapping(block.place, {**block.entries, "use": meant}, block.size, block.height)


def find_plugin(section: registry.Section, node: YamlNode, place: TextPlace) -> type[Plugin[Any]] | Diagnostic:
    """The plugin class that a block's `use:` names, or a diagnostic."""
    if not isinstance(node, YamlMapping):
        is_text = isinstance(node, YamlScalar) and isinstance(node.value, str)
        expected = (
            "a word or a block with 'use:'"
            if section in (*LISTED_SECTIONS, *SINGLE_SECTIONS.values())
            else "a block with 'use:'"
        )
        hint = _suggest_block(section, node.text) if isinstance(node, YamlScalar) and is_text else _list_words(section)
        return place.diagnose(f"expected {expected}, found {describe(node)}", "wrong-type", hint)
    if "use" not in node.entries:
        return place.diagnose("the key 'use' is missing", "missing-key", _list_words(section))
    entry = node.entries["use"]
    use = entry.value
    where = place_of(entry.key_place, use)
    if not isinstance(use, YamlScalar) or not isinstance(use.value, str):
        return where.diagnose(
            f"expected a word of {section}, found {describe(use)}", "wrong-type", _list_words(section)
        )
    if registry.has_word(section, use.value):
        try:
            plugin: type[Plugin[Any]] = registry.load(section, use.value)
            return plugin
        except UsageError as error:
            return where.diagnose(str(error), "broken-plugin")
    singular = registry.name_one(section)
    return where.diagnose(f"unknown {singular} {quote(use.text)}", "unknown-word", _suggest_word(section, use.value))


def _suggest_block(section: registry.Section, text: str) -> str:
    words = registry.words(section)
    if section == "models" and text in DEFAULT_MODELS:
        return f"'{text}' needs no declaration; remove it, or write {{use: onnx, model: {text}}}"
    if text in words:
        return f"write {{use: {text}}}"
    if section == "models" and "onnx" in words:
        return f"write {{use: onnx, model: {cut(text)}}}"
    if section == "systems" and "file" in words and ("/" in text or "." in text):
        return f"write {{use: file, path: {cut(text)}}}"
    return suggest(text, words) or _list_words(section)


def _suggest_word(section: registry.Section, word: str) -> str:
    others = [other for other in registry.SECTIONS if other != section and word in registry.words(other)]
    if others:
        return f"it is a word of '{others[0]}:'; {_list_words(section)}"
    if section == "metrics" and any(_measures(word)):
        if not any(measure in registry.words(section) for measure in _measures(word)):
            return "specs do not support it; use `rageval-spec score` or `rageval_spec.evaluate`"
        return f"write a measure with its cutoff without 'use:': - {cut(word)}; beside other keys, as 'cutoff: 10'"
    if section == "systems" and word in DEFAULT_MODELS:
        return f"{quote(word)} is a model: write {{use: dense, model: {word}}}"
    if section == "metrics" and (meant := suggest_metric(word)):
        return meant
    if meant := _find_known_as(section, word):
        return f"did you mean '{meant}'?"
    return suggest_model(section, word) or suggest(word, registry.words(section)) or _list_words(section)


def suggest_model(section: registry.Section, word: str) -> str | None:
    """What to write if a judge is called by the name of a model or of who serves it, such as `openai`."""
    model = _find_known_as("models", word) if section == "judges" else None
    if model is None:
        return None
    return f"it is a model; declare it under 'models:' with 'use: {model}', and write {{use: claims, model: NAME}} here"


def suggest_metric(text: str) -> str | None:
    """The metric that other tools call by this name, or the percentile that a cutoff was meant to be."""
    plugins = {word: _load("metrics", word) for word in registry.words("metrics")}
    if found := _PERCENTILE.fullmatch(_fold(text)):
        word, place = (found["word"], found["place"]) if found["word"] else (found["later"], found["first"])
        if (plugin := plugins.get(word)) and "percentile" in plugin.node_type.model_fields:
            return f"write {word}@p{place}, or as a block {{use: {word}, percentile: {place}}}"
    infos = {word: getattr(plugin, "info", None) for word, plugin in plugins.items()}
    names = {word: info.aliases for word, info in infos.items() if isinstance(info, MetricInfo)}
    meant = next((word for word, aliases in names.items() if _fold(text) in map(_fold, aliases)), None)
    meant = meant or _find_known_as("metrics", text)
    return None if meant is None else f"did you mean '{meant}'?"


def _find_known_as(section: registry.Section, text: str) -> str | None:
    plugins = ((word, _load(section, word)) for word in registry.words(section))
    return next((word for word, plugin in plugins if plugin and _fold(text) in plugin.known_as), None)


def _fold(text: str) -> str:
    return text.lower().replace("-", "_").replace(" ", "_")


def _load(section: registry.Section, word: str) -> type[Plugin[Node]] | None:
    try:
        plugin: type[Plugin[Node]] = registry.load(section, word)
    except UsageError:
        return None
    return plugin


def _measures(text: str) -> Iterator[str]:
    from rageval_spec import kernels

    try:
        yield kernels.parse_measure(text).name
    except UsageError:
        return


def _list_words(section: registry.Section) -> str:
    words = registry.words(section)
    if not words:
        return f"this installation has no {section}"
    if section == "metrics":
        return "to list the metrics, run `rageval-spec list metrics`"
    key = next((key for key, of in SINGLE_SECTIONS.items() if of == section), section)
    if len(words) == 1:
        return f"the only word of '{key}:' is {words[0]}"
    return f"the words of '{key}:' are {', '.join(words)}"
