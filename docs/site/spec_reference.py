"""The reference of specs: each key and each word of `use:`, in the words of `rageval-spec explain`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

from markdown_text import code, escape, fence, join, table
from staging import Page

from rageval_spec import registry
from rageval_spec.commands.plugin_words import METRIC_GROUPS, describe_plugin_as_json, find_keys, load_metric, summarize
from rageval_spec.spec.diagnostic_codes import CODES

Schema = Mapping[str, Any]
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxLength": "at most {} characters",
}
_TYPES = {"integer": "whole number", "boolean": "`true` or `false`", "string": "text", "object": "keys and values"}


def write_spec_page() -> Page:
    """All keys of a spec that are not sections of words."""
    from rageval_spec.spec.blocks.spec_node import SpecNode

    schema = SpecNode.model_json_schema(by_alias=True)
    sections = [(f"[`{one}`]({one}/index.md)", escape(schema["properties"][one]["description"])) for one in
                registry.SECTIONS if one in schema["properties"]]  # fmt: skip
    parts = ["# Keys of a spec", "`rageval-spec explain KEY` prints what this page says of a key. An editor completes "
             "and checks a spec that begins with `# yaml-language-server: $schema=schemas/spec.schema.json`.",
             "## Sections of words", table(["section", "what it holds"], sections)]  # fmt: skip
    for key in schema["properties"]:
        if key not in registry.SECTIONS:
            parts += [f"## {code(key)}", *_describe_top_key(key, schema)]
    return Page("reference/spec.md", join(parts))


def _describe_top_key(key: str, schema: Schema) -> Iterator[str]:
    own = schema["properties"][key]
    yield escape(own.get("description", ""))
    yield table(["type", "default"], [(describe_type(own, schema["$defs"]), _show_default(own))])
    inner = {name.removeprefix(f"{key}."): told for name, told in find_keys(key).items() if name != key}
    if inner:
        yield _tabulate_keys(inner, schema["$defs"])


def write_diagnostics_page() -> Page:
    """Each code of a diagnostic, with an anchor of its name."""
    parts = [
        "# Diagnostics",
        "An error in a spec ends with its code: `spec.yaml:3:26: unknown key 'k'; did you mean 'k1'? [unknown-key]`. "
        "`rageval-spec explain CODE` prints what this page says.",
    ]
    for name, told in CODES.items():
        parts += [f"## `{name}`", escape(told.meaning), fence(told.example, "yaml"), "Write instead:"]
        parts += [fence(told.instead, "yaml")]
    return Page("reference/diagnostics.md", join(parts))


def write_word_pages() -> Iterator[Page]:
    """A page for each section, and one for each of its words."""
    for section in registry.SECTIONS:
        words = sorted(registry.builtin_words(section))
        yield Page(f"reference/{section}/index.md", _list_words(section, words))
        for word in words:
            yield Page(f"reference/{section}/{word}.md", _describe_word(section, word))


def _list_words(section: registry.Section, words: list[str]) -> str:
    key = {"notifiers": "monitor: notify:", "engines": "engine:"}.get(section, f"{section}:")
    parts = [f"# {section.capitalize()}", f"The words that `use:` accepts under `{key}`."]
    rows = {word: (f"[`{word}`]({word}.md)", escape(summarize(section, word))) for word in words}
    if section != "metrics":
        return join([*parts, table(["word", "what it does"], rows.values())])
    for group, heading in METRIC_GROUPS.items():
        chosen = [row for word, row in rows.items() if load_metric(word).group == group]
        parts += [f"## {heading}", table(["metric", "what it measures"], chosen)] if chosen else []
    return join(parts)


def _describe_word(section: registry.Section, word: str) -> str:
    told = json.loads(describe_plugin_as_json(section, word))
    parts = [f"# `{word}`", escape(told["summary"]), fence(told["write"], "yaml")]
    if how := told.get("how"):
        parts += ["## How it works", *(escape(one) for one in how.split("\n\n"))]
    parts += ["## What it can judge", _list(told["can"])] if told.get("can") else []
    if section == "metrics":
        parts += [
            "## Formula",
            fence(fill(told["formula"], 76, break_on_hyphens=False)),
            "## Edge cases",
            _list(told["edge_cases"]),
        ]
    parts += ["## Keys", _tabulate_keys(told["keys"], told["definitions"])] if told["keys"] else []
    if models := told.get("models"):
        parts += ["## Known models", _tabulate_models(models)]
    parts += ["## Facts", table(["fact", "value"], _list_facts(section, word, told))]
    return join(parts)


def _list_facts(section: registry.Section, word: str, told: Schema) -> Iterator[tuple[str, str]]:
    if section == "metrics":
        low, high = told["range"]
        yield "Range", f"{low:g} to {high:g}" if high is not None else f"{low:g} or more"
        if told["unit"]:
            yield "Unit", escape(told["unit"])
        yield "Better", {True: "higher", False: "lower", None: "neither"}[told["higher_is_better"]]
        yield "Aggregated as", escape(told["statistic"])
        if told["needs"]:
            yield "Needs", escape(told["needs"])
        yield "Source", escape(told["source"])
    if told["known_as"]:
        yield "Also known as", ", ".join(map(code, told["known_as"]))
    yield "Since", told["since"]
    yield "On the command line", code(f"rageval-spec explain {section}.{word}")


def _list(items: list[str]) -> str:
    return "\n".join(f"- {escape(one)}" for one in items)


def _tabulate_models(models: list[Schema]) -> str:
    heads = [key for key, value in models[0].items() if isinstance(value, str | int | float) and key != "example"]
    return table([head.replace("_", " ") for head in heads],
                 ([escape(str(model.get(head, ""))) for head in heads] for model in models))  # fmt: skip


def _tabulate_keys(keys: Schema, definitions: Schema) -> str:
    rows = [*_list_key_rows(keys, definitions, "", ())]
    return table(["key", "type", "default", "meaning"], rows)


def _list_key_rows(keys: Schema, definitions: Schema, prefix: str, above: tuple[str, ...]) -> Iterator[list[str]]:
    """A row for each key, and below it those of its own block."""
    for key, schema in sorted(keys.items(), key=lambda item: item[1].get("required") is not True):
        default = "required" if schema.get("required") is True else _show_default(schema)
        meaning = escape(schema.get("description", ""))
        yield [code(prefix + key), describe_type(schema, definitions), default, meaning]
        for name in _find_blocks(schema):
            if name not in above and len(above) < 2:
                inner = definitions[name]
                needed = set(inner.get("required", ()))
                told = {one: {**value, "required": one in needed} for one, value in inner["properties"].items()}
                yield from _list_key_rows(told, definitions, f"{prefix}{key}.", (*above, name))


def _find_blocks(schema: Schema) -> Iterator[str]:
    for arm in (schema, *schema.get("anyOf", ()), schema.get("items", {})):
        if isinstance(arm, dict) and "$ref" in arm:
            yield arm["$ref"].rpartition("/")[2]


def _show_default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default is None or isinstance(default, dict) else code(json.dumps(default, ensure_ascii=False))


def describe_type(schema: Schema, definitions: Schema) -> str:
    """What a key accepts, with its bounds, as Markdown."""
    arms = [describe_type(arm, definitions) for arm in schema.get("anyOf", ()) if arm.get("type") != "null"]
    if arms:
        return " or ".join(dict.fromkeys(arms))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(code, schema.get("enum", [schema.get("const")])))
    if "$ref" in schema:
        inner = definitions[schema["$ref"].rpartition("/")[2]]
        return "block of keys" if "properties" in inner else describe_type(inner, definitions)
    bounds = ", ".join(text.format(schema[name]) for name, text in _BOUNDS.items() if name in schema)
    if schema.get("type") == "array":
        of = describe_type(schema.get("items", {}), definitions)
        return f"list of {of}" + (f", {bounds}" if bounds else "")
    kind = _TYPES.get(str(schema.get("type", "")), str(schema.get("type", "any value")))
    return f"{kind}, {bounds}" if bounds else kind
