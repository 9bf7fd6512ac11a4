"""The JSON Schema of a spec, generated from the node types of this package and of the installed plugins.

It is draft-07, which YAML language servers read. The variants of a section are selected by `if`/`then` on `use` rather
than by `oneOf`, so that a typo gets a message about its own block.

    python -m rageval_spec.spec.json_schema --write    # after a change to a node
    python -m rageval_spec.spec.json_schema --check    # exit code 1 if the published schema is out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from rageval_spec import kernels, registry
from rageval_spec.spec.blocks.spec_node import LISTED_SECTIONS, NAMED_SECTIONS, SECTIONS, SpecNode

JsonObject: TypeAlias = dict[str, Any]

PUBLISHED = Path("schemas/spec.schema.json")
_DRAFT = "http://json-schema.org/draft-07/schema#"
_SIMPLE = ("type", "enum", "const")


def build_schema(*, builtin_only: bool = False) -> JsonObject:
    """The schema of a whole spec; see `rageval_spec.spec.schema`."""
    words = {section: _words(section, builtin_only) for section in SECTIONS}
    nodes = {
        f"{section}.{word}": registry.load(section, word).node_type
        for section, found in words.items()
        for word in found
    }
    definitions, top = _generate(nodes)
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
    return {
        "$schema": _DRAFT,
        "title": "rageval-spec",
        **top,
        "definitions": dict(sorted(definitions.items())),
    }


def render_schema(schema: JsonObject) -> str:
    """The text of a schema, as published."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _words(section: registry.Section, builtin_only: bool) -> Sequence[str]:
    return sorted(registry.builtin_words(section)) if builtin_only else registry.words(section)


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
    names = {model: _definition_name(references[model, "validation"]) for model in models}
    top = definitions.pop(names[SpecNode])
    for name, model in nodes.items():
        definitions[name] = _with_word(definitions[names[model]], name.partition(".")[2])
    for generic in set(names.values()) - {names[SpecNode]}:
        if not _is_referenced(generic, [top, *definitions.values()]):
            del definitions[generic]
    return definitions, top


class _Generator(GenerateJsonSchema):
    """Leaves out titles that repeat a key's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's protocol
        """Never: a title would repeat the key."""
        return False


def _definition_name(reference: JsonObject) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _is_referenced(name: str, schemas: Sequence[JsonObject]) -> bool:
    return any(f'"#/definitions/{name}"' in json.dumps(schema) for schema in schemas)


def _with_word(definition: JsonObject, word: str) -> JsonObject:
    """A node's definition for one word of `use:`."""
    use = {key: value for key, value in definition["properties"]["use"].items() if key not in _SIMPLE}
    properties = {**definition["properties"], "use": {**use, "const": word}}
    return {**definition, "properties": properties}


def _block_schema(section: str, words: Sequence[str]) -> JsonObject:
    """The schema of a block with `use:`, whose word selects the other keys."""
    use: JsonObject = {"type": "string", "description": f"The type of {registry.name_one(section)}."}
    if words:
        use["enum"] = list(words)
    return {
        "type": "object",
        "required": ["use"],
        "properties": {"use": use},
        **({} if words else {"not": {}}),
        **({"allOf": [_variant(section, word) for word in words]} if words else {}),
    }


def _variant(section: str, word: str) -> JsonObject:
    return {
        "if": {"type": "object", "properties": {"use": {"const": word}}, "required": ["use"]},
        "then": {"$ref": f"#/definitions/{section}.{word}"},
    }


def _entry_schema(section: str, words: Sequence[str], nodes: dict[str, type[BaseModel]]) -> JsonObject:
    """The schema of a block, or of a bare word if the node has no required keys."""
    bare = [word for word in words if _needs_nothing(nodes[f"{section}.{word}"])]
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


def _needs_nothing(node: type[BaseModel]) -> bool:
    return not any(field.is_required() for name, field in node.model_fields.items() if name != "use")


def _measure_pattern() -> str:
    """A pattern for measures with parameters and cutoff, in any spelling that the kernel accepts. It checks details."""
    names = sorted({*kernels.measure_names(), *kernels.measure_aliases()}, key=lambda name: (-len(name), name))
    return f"^({'|'.join(map(_any_spelling, names))})([ (@_.].*)?$"


def _any_spelling(name: str) -> str:
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else "[-_]?" for c in name)


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


def _write(path: Path, text: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 0


def _check(path: Path, text: str) -> int:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path} is out of date; run: python -m rageval_spec.spec.json_schema --write", file=sys.stderr)
    return 1


def main(arguments: Sequence[str]) -> int:
    """Take `--write` or `--check`, and a path (by default `schemas/spec.schema.json` in the current folder)."""
    actions: dict[str, Callable[[Path, str], int]] = {"--write": _write, "--check": _check}
    if not arguments or arguments[0] not in actions or len(arguments) > 2:
        print("usage: python -m rageval_spec.spec.json_schema --write|--check [FILE]", file=sys.stderr)
        return 2
    path = Path(arguments[1]) if len(arguments) == 2 else PUBLISHED
    return actions[arguments[0]](path, render_schema(build_schema(builtin_only=True)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
