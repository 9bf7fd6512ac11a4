"""The JSON Schema of a spec, generated from the node types of this package and of the installed plugins.

It is draft-07, which YAML language servers read. The variants of a section are selected by `if`/`then` on `use` rather
than by `oneOf`, so that a typo gets a message about its own block.

    python -m rageval_spec.spec.json_schema --write    # after a change to a node
    python -m rageval_spec.spec.json_schema --check    # exit code 1 if the published schema is out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from rageval_spec import kernels, registry
from rageval_spec.spec.blocks.monitor import can_take
from rageval_spec.spec.blocks.spec_node import (
    INNER_SECTIONS,
    LISTED_SECTIONS,
    NAMED_SECTIONS,
    SECTIONS,
    SINGLE_SECTIONS,
    SpecNode,
    needs_more,
)

JsonObject: TypeAlias = dict[str, Any]

PUBLISHED = Path("schemas/spec.schema.json")
_DRAFT = "http://json-schema.org/draft-07/schema#"
_NEEDS_DATASETS = {"required": ["datasets"], "properties": {"datasets": {"minProperties": 1}}}
"""Of a spec that watches no production."""
_SIMPLE = ("type", "enum", "const")


def build_schema(*, builtin_only: bool = False) -> JsonObject:
    """The schema of a whole spec; see `rageval_spec.spec.schema`."""
    words: dict[str, Sequence[str]] = {
        section: sorted(registry.builtin_words(section)) if builtin_only else registry.words(section)
        for section in SECTIONS
    }
    plugins = {f"{section}.{word}": registry.load(section, word) for section, of in words.items() for word in of}
    nodes = {name: plugin.node_type for name, plugin in plugins.items()}
    definitions, top = _generate(nodes)
    for name, plugin in plugins.items():
        if info := getattr(plugin, "info", None):
            definitions[name]["description"] = info.summary
    properties = top["properties"]
    for section in NAMED_SECTIONS:
        definitions[section] = _block_schema(section, words[section])
        named = properties[section]
        (pattern,) = named.pop("patternProperties")
        named["propertyNames"]["pattern"] = pattern
        named["additionalProperties"] = {"$ref": f"#/definitions/{section}"}
    for section in LISTED_SECTIONS:
        definitions[section] = _entry_schema(section, words[section], nodes)
        properties[section]["items"] = {"$ref": f"#/definitions/{section}"}
    for path, section in INNER_SECTIONS.items():
        owner, key = map(str, path)
        if section in LISTED_SECTIONS:  # only the words of tools that a monitor can send to
            taking = [word for word in words[section] if can_take(plugins[f"{section}.{word}"])]
            definitions[key] = _entry_schema(section, taking, nodes)
        else:
            definitions[section] = _block_schema(section, words[section])
        shape = key if section in LISTED_SECTIONS else section
        definitions[_find_node(properties[owner])]["properties"][key]["items"] = {"$ref": f"#/definitions/{shape}"}
    for key, section in SINGLE_SECTIONS.items():
        definitions[section] = _entry_schema(section, words[section], nodes)
        properties[key] = {"description": properties[key]["description"], "$ref": f"#/definitions/{section}"}
        properties[key] = _to_draft_07(properties[key])
    top |= {"if": {"not": {"required": ["monitor"]}}, "then": _NEEDS_DATASETS}
    return {"$schema": _DRAFT, "title": "rageval-spec", **top, "definitions": dict(sorted(definitions.items()))}


def _find_node(schema: JsonObject) -> str:
    """The name of the definition that a schema refers to, alone or beside null."""
    choices = (schema, *schema.get("anyOf", ()), *schema.get("allOf", ()))
    return next(str(one["$ref"]).rpartition("/")[2] for one in choices if "$ref" in one)


def render_schema(*, builtin_only: bool = False) -> str:
    return json.dumps(build_schema(builtin_only=builtin_only), indent=2, ensure_ascii=False) + "\n"


def _generate(nodes: dict[str, type[BaseModel]]) -> tuple[JsonObject, JsonObject]:
    """The definitions of all nodes (plugins' nodes under `section.word`), and the schema of the top level."""
    models: list[type[BaseModel]] = [SpecNode, *dict.fromkeys(nodes.values())]
    references, generated = models_json_schema(
        [(model, "validation") for model in models],
        by_alias=True,
        ref_template="#/definitions/{model}",
        schema_generator=_Generator,
    )
    definitions: JsonObject = {name: _to_draft_07(schema) for name, schema in generated.get("$defs", {}).items()}
    names = {model: str(references[model, "validation"]["$ref"]).rpartition("/")[2] for model in models}
    top = definitions.pop(names[SpecNode])
    for name, model in nodes.items():
        definition = definitions[names[model]]
        use = {key: value for key, value in definition["properties"]["use"].items() if key not in _SIMPLE}
        properties = {**definition["properties"], "use": {**use, "const": name.partition(".")[2]}}
        definitions[name] = {**definition, "properties": properties}
    texts = {name: json.dumps(schema) for name, schema in (("", top), *definitions.items())}
    for generic in set(names.values()) - {names[SpecNode]}:
        if not any(f'"#/definitions/{generic}"' in text for text in texts.values()):
            del definitions[generic], texts[generic]
    return definitions, top


class _Generator(GenerateJsonSchema):
    """Leaves out titles that repeat a key's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's protocol
        """Never: a title would repeat the key."""
        return False


def _block_schema(section: str, words: Sequence[str]) -> JsonObject:
    """The schema of a block with `use:`, whose word selects the other keys."""
    use: JsonObject = {"type": "string", "description": f"The type of {registry.name_one(section)}."}
    schema: JsonObject = {"type": "object", "required": ["use"], "properties": {"use": use}}
    if not words:
        return {**schema, "not": {}}
    use["enum"] = list(words)
    variants = [
        {
            "if": {"type": "object", "properties": {"use": {"const": word}}, "required": ["use"]},
            "then": {"$ref": f"#/definitions/{section}.{word}"},
        }
        for word in words
    ]
    return {**schema, "allOf": variants}


def _entry_schema(section: registry.Section, words: Sequence[str], nodes: dict[str, type[BaseModel]]) -> JsonObject:
    """The schema of a block, or of a bare word if the node has no required keys."""
    bare = [word for word in words if not needs_more(section, word)]
    text: JsonObject = {"enum": bare}
    if section == "metrics":
        percentiles = [word for word in bare if "percentile" in nodes[f"metrics.{word}"].model_fields]
        forms = [_measure_pattern(), *(f"^{word}@p[1-9][0-9]?$" for word in percentiles)]
        text = {"anyOf": [{"enum": bare}, *({"pattern": form} for form in forms)]}
    block = _block_schema(section, words)
    return {
        "type": ["string", "object"],
        "if": {"type": "string"},
        "then": text,
        "else": {key: value for key, value in block.items() if key != "type"},
    }


def _measure_pattern() -> str:
    """A pattern for measures with parameters and cutoff, in any spelling that the kernel accepts. It checks details."""
    names = sorted({*kernels.measure_names(), *kernels.measure_aliases()}, key=lambda name: (-len(name), name))
    spellings = ("".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else "[-_]?" for c in name) for name in names)
    return f"^({'|'.join(spellings)})([ (@_.].*)?$"


def _to_draft_07(schema: Any) -> Any:
    """Convert pydantic's draft 2020-12 to draft-07, where `$ref` has no siblings; write `null` as one of the types."""
    if isinstance(schema, list):
        return [_to_draft_07(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted = _join_null({key: _to_draft_07(value) for key, value in schema.items()})
    if isinstance(converted.get("title"), str):
        del converted["title"]
    if "prefixItems" in converted:
        converted["items"] = converted.pop("prefixItems")
        converted["additionalItems"] = False
    if "$ref" in converted and len(converted) > 1:
        converted["allOf"] = [{"$ref": converted.pop("$ref")}]
    return converted


def _join_null(schema: JsonObject) -> JsonObject:
    """Join `anyOf` of one simple type and null into one type, so that editors show one description."""
    options = schema.get("anyOf")
    if not isinstance(options, list) or len(options) != 2 or {"type": "null"} not in options:
        return schema
    other = next(option for option in options if option != {"type": "null"})
    if not isinstance(other.get("type"), str):
        return schema
    own = {key: value for key, value in schema.items() if key != "anyOf"}
    joined = {**own, **{key: value for key, value in other.items() if key not in own}}
    joined["type"] = [other["type"], "null"]
    if "enum" in other:
        joined["enum"] = [*other["enum"], None]
    return joined


def main(arguments: Sequence[str]) -> int:
    """Take `--write` or `--check`, and a path (by default `schemas/spec.schema.json` in the current folder)."""
    if not arguments or arguments[0] not in ("--write", "--check") or len(arguments) > 2:
        print("usage: python -m rageval_spec.spec.json_schema --write|--check [FILE]", file=sys.stderr)
        return 2
    path = Path(arguments[1]) if len(arguments) == 2 else PUBLISHED
    text = render_schema(builtin_only=True)
    if arguments[0] == "--write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != text:
        print(f"{path} is out of date; run: python -m rageval_spec.spec.json_schema --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
