"""Turns pydantic's errors into diagnostics for the author of a spec: where, what, and what to write instead.

A node's type annotations say which nodes a key path leads to, and whose names it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.block_names import Reference, ReferredSection
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec.blocks.spec_node import NAME_PATTERN, NAMED_SECTIONS, VERSION, SpecNode, default_blocks
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import KeyPath, TextPlace, cut, quote
from rageval_spec.wording import list_choices

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "nothing",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "a mapping"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
}
_MOST_KEYS_SHOWN, _MOST_KEYS_HINTED = 28, 6
# A range of numbers in the usual notations, `1-5` or `0..1`, and a percentage.
_RANGE = compile_later(r"(-?\d+(?:\.\d+)?)\s*(?:-|\u2013|\.\.\.?|to|/|:)\s*(-?\d+(?:\.\d+)?)")
_BOUND = compile_later(r"([^\W\d][^\s<>]*)(?:\s*([<>])=?\s*([\d.]+))?")
_PERCENTAGE = compile_later(r"(-?\d+(?:\.\d+)?)\s*%")


class CheckedBlock(NamedTuple):
    """What is being validated: the tree of a block, its place, and the type that it must have.

    Attributes:
        place: where messages on the whole block point.
        title: how messages name a block that was written as a bare word: `the metric 'ndcg@10'`. None for a mapping.
    """

    node: yaml_tree.YamlNode
    place: TextPlace
    model: type[BaseModel]
    title: str | None = None


class _Finding(NamedTuple):
    """One of pydantic's errors, at the deepest place in the tree that it refers to.

    Attributes:
        branch: the path to a value with several possible types, of which pydantic tried one here; None otherwise.
        missing: the missing key.
        is_key: whether the key of `path` is wrong rather than its value.
    """

    kind: str
    context: Mapping[str, Any]
    message: str
    path: KeyPath
    node: yaml_tree.YamlNode
    place: TextPlace
    branch: KeyPath | None
    missing: str = ""
    is_key: bool = False


def explain(block: CheckedBlock, errors: Sequence[ErrorDetails]) -> list[Diagnostic]:
    """A diagnostic for each error, except errors that follow from an earlier one on the same value."""
    findings = [
        finding
        for finding in (_locate(block, error) for error in errors)
        # A list can be too short only because pydantic does not count wrong entries, which have their own errors.
        if finding.kind != "too_short" or _length(finding.node) < finding.context["min_length"]
    ]
    meant = {  # the missing keys of which an unknown key in the same block is a misspelling
        (finding.path[:-1], _suggest_key(str(finding.path[-1]), _known_keys(block, finding)))
        for finding in findings
        if finding.kind == "extra_forbidden"
    }
    findings = [f for f in findings if not f.missing or (f.path, f"did you mean '{f.missing}'?") not in meant]
    diagnostics = [_explain_one(block, one) for one in findings if one.branch is None and not _is_faulty(one)]
    branches: dict[KeyPath, list[_Finding]] = {}
    for finding in findings:
        if finding.branch is not None:
            branches.setdefault(finding.branch, []).append(finding)
    for group in branches.values():
        if not any(map(_is_faulty, group)):
            diagnostics += _explain_branches(block, group)
    return diagnostics


def list_keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def describe(node: yaml_tree.YamlNode) -> str:
    """A description of a value in the spec: `the text 'abc'`, `the number 8`, `a list`."""
    if isinstance(node, yaml_tree.YamlMapping):
        return "a mapping"
    if isinstance(node, yaml_tree.YamlSequence):
        return "a list"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        read = f", which YAML reads as {str(node.value).lower()}" if yaml_tree.is_word_for_boolean(node.text) else ""
        return f"{node.text}{read}"
    if isinstance(node.value, str):
        return f"the text {quote(node.text)}"
    return f"the number {cut(node.text)}"


def diagnose_secret(place: TextPlace) -> Diagnostic:
    """A diagnostic for a secret in a key whose type is not `Secret`."""
    message = "a secret cannot be used here, because reports and stored keys show this text"
    return place.diagnose(message, "misplaced-secret", "if it is not a secret, write ${VAR}")


def _is_faulty(finding: _Finding) -> bool:
    return isinstance(finding.node, yaml_tree.YamlScalar) and finding.node.faulty


def _locate(block: CheckedBlock, error: ErrorDetails) -> _Finding:
    """Follow pydantic's location through the tree. A step that is not a key names a branch of a union."""
    node, place = block.node, block.place
    path: KeyPath = ()
    branch: KeyPath | None = None
    missing = ""
    steps = [step for step in error["loc"] if step != "[key]"]
    is_key = error["type"] == "extra_forbidden" or len(steps) < len(error["loc"])
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        if isinstance(node, yaml_tree.YamlMapping) and step in node.entries:
            entry = node.entries[str(step)]
            node = entry.value
            place = entry.key_place if is_key and last else place_of(entry.key_place, node)
        elif isinstance(node, yaml_tree.YamlSequence) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
            place = node.place
        elif error["type"] == "missing" and last:
            missing = str(step)
            continue
        else:
            branch = path if branch is None else branch
            continue
        path = (*path, step)
    return _Finding(error["type"], error.get("ctx", {}), error["msg"], path, node, place, branch, missing, is_key)


def place_of(key_place: TextPlace, value: yaml_tree.YamlNode) -> TextPlace:
    """Where messages on a value point: to the value if it is a scalar, otherwise to its key."""
    if isinstance(value, yaml_tree.YamlScalar) and value.text:
        return value.place
    return key_place


def _explain_branches(block: CheckedBlock, group: Sequence[_Finding]) -> Iterable[Diagnostic]:
    """Explain a value with several possible types by the closest type, or by all of them."""
    deepest = max(len(finding.path) for finding in group)
    branch = group[0].branch or ()
    missing = [finding for finding in group if finding.missing]
    if deepest <= len(branch) and not missing:
        return [_explain_value(block, group)]
    lowest = max(deepest, len(branch) + 1)  # an error on the value as a whole belongs to another type
    closest: dict[KeyPath, list[_Finding]] = {}
    for finding in group:
        if len(finding.path) >= lowest and not finding.missing:
            closest.setdefault(finding.path, []).append(finding)
    told = [_explain_one(block, finding) for finding in missing]
    return [*told, *(_explain_value(block, found) for found in closest.values())]


def _explain_value(block: CheckedBlock, group: Sequence[_Finding]) -> Diagnostic:
    """Explain a value that has none of its possible types."""
    if len(group) == 1:
        return _explain_one(block, group[0])
    expected = [_EXPECTED[finding.kind] for finding in group if finding.kind in _EXPECTED]
    choices = [choice for finding in group for choice in _choices(finding)]
    if len(expected) + bool(choices) < len({(finding.kind, finding.message) for finding in group}):
        told = [finding for finding in group if finding.kind not in _EXPECTED]
        return _explain_one(block, next((one for one in told if not _choices(one)), told[0]))
    words = _join([*dict.fromkeys(expected), *choices])
    hint = _hint_mismatch(group[0].node, words, choices) or _hint_keys(block, group[0])
    return _explain_mismatch(group[0], words, choices, hint)


def _explain_one(block: CheckedBlock, finding: _Finding) -> Diagnostic:
    if isinstance(finding.node, yaml_tree.YamlScalar) and str(finding.node.value).startswith(MARK):
        return diagnose_secret(finding.place)
    if finding.kind == "missing":
        return _explain_missing(block, finding)
    if finding.kind == "extra_forbidden":
        return _explain_unknown_key(block, finding)
    if finding.kind == "string_type" and (section := named_section(block.model, finding.path)):
        message = f"expected the name of a {registry.name_one(section)}, found {describe(finding.node)}"
        return finding.place.diagnose(message, "wrong-type", _hint_name(finding.node, section))
    if finding.kind in _EXPECTED:
        hint = _hint_names(block, finding) if _EXPECTED[finding.kind] in ("a list", "a mapping") else None
        return _explain_mismatch(finding, _EXPECTED[finding.kind], hint=hint)
    if finding.kind in ("literal_error", "enum"):
        choices = _choices(finding)
        return _explain_mismatch(finding, _join(choices), choices)
    if finding.context.get("pattern") == NAME_PATTERN or (finding.is_key and finding.kind.startswith("string_too")):
        name = str(finding.path[-1]) if finding.is_key else _written(finding.node)
        return finding.place.diagnose(f"{quote(name)} is not a valid name", "invalid-name", _NAME_HINT)
    if block.model is SpecNode and finding.path[:1] == ("axes",) and finding.is_key:
        message = f"an axis is a key of a block under datasets, systems or models, not {quote(str(finding.path[-1]))}"
        return finding.place.diagnose(message, "wrong-axis", "for example, systems.dense.depth: [50, 100]")
    if block.model is SpecNode and finding.path == ("version",):
        message = f"this release reads only version {VERSION} of the spec, not {cut(_written(finding.node))}"
        return finding.place.diagnose(message, "out-of-bounds")
    is_block = not finding.path or (finding.kind == "value_error" and isinstance(finding.path[-1], int))
    subject = "this block" if is_block else quote(str(finding.path[-1]))
    if finding.kind in ("too_short", "too_long"):
        size = _length(finding.node) or "none"
        message = f"{subject} must {_BOUNDS[finding.kind](finding.context)}, but has {size}"
        return finding.place.diagnose(message, "out-of-bounds")
    if finding.kind == "string_too_short" and finding.context["min_length"] == 1:
        return finding.place.diagnose(f"{subject} must not be empty", "out-of-bounds")
    if bound := _BOUNDS.get(finding.kind):
        message = f"{subject} must {bound(finding.context)}, not {describe(finding.node)}"
        return finding.place.diagnose(message, "out-of-bounds", _hint_address(finding) or _hint_share(finding))
    message = re.sub(r"^(Value|Assertion) error, ", "", finding.message)
    return finding.place.diagnose(f"{subject}: {message[:1].lower()}{message[1:]}", "wrong-value")


_NAME_HINT = 'avoid / \\ : * ? " < > | $ and dots or spaces at the ends, and use at most 100 characters'


def _hint_address(finding: _Finding) -> str | None:
    """A hint with the full address, for a host without a scheme."""
    text = _written(finding.node)
    is_host = re.fullmatch(r"[\w.-]+(:[0-9]+)?(/\S*)?", text) and ("." in text or ":" in text)
    return f"write http://{cut(text)}" if is_host and finding.context.get("pattern") == _ADDRESS else None


def _hint_share(finding: _Finding) -> str | None:
    """A hint for a percentage where a share is meant; below 5, it is more likely just out of bounds."""
    value, highest = getattr(finding.node, "value", None), finding.context.get("lt", finding.context.get("le"))
    is_share = highest == 1 and isinstance(value, int | float)
    return f"for {value:g}% write {value / 100:g}" if is_share and value and 5 <= value <= 100 else None


def _written(node: yaml_tree.YamlNode) -> str:
    return node.text if isinstance(node, yaml_tree.YamlScalar) else describe(node)


def _length(node: yaml_tree.YamlNode) -> int:
    return len(node.entries) if isinstance(node, yaml_tree.YamlMapping) else len(getattr(node, "items", ()))


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _spell(bound: float) -> str:
    """A bound as it is written in a spec. Whole numbers keep all their digits."""
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


_ENDINGS = compile_later(r"\\\.\((\w+(?:\|\w+)+)\)\$")
_ADDRESS = "^https?://"
_PATTERNS = {_ADDRESS: "begin with http:// or https://"}
"""Patterns of nodes, in words."""

_BOUNDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda c: f"be above {_spell(c['gt'])}",
    "greater_than_equal": lambda c: f"be at least {_spell(c['ge'])}",
    "less_than": lambda c: f"be below {_spell(c['lt'])}",
    "less_than_equal": lambda c: f"be at most {_spell(c['le'])}",
    "multiple_of": lambda c: f"be a multiple of {_spell(c['multiple_of'])}",
    "string_too_short": lambda c: f"have at least {_count(c['min_length'], 'character', 'characters')}",
    "string_too_long": lambda c: f"have at most {_count(c['max_length'], 'character', 'characters')}",
    "string_pattern_mismatch": lambda c: _spell_pattern(c["pattern"]),
    "too_short": lambda c: f"have at least {_count(c['min_length'], 'entry', 'entries')}",
    "too_long": lambda c: f"have at most {_count(c['max_length'], 'entry', 'entries')}",
}


def _spell_pattern(pattern: str) -> str:
    """What a text must do to match a pattern: in words if it is a known one, or a choice of endings of files."""
    if found := _ENDINGS.fullmatch(pattern):
        endings = [f".{ending}" for ending in found[1].split("|")]
        return f"end in {', '.join(endings[:-1])} or {endings[-1]}"
    return _PATTERNS.get(pattern, f"match {pattern}")


_SIMPLEST = "overlap"
"""The judge that hints name first, because it needs no model."""


def _explain_missing(block: CheckedBlock, finding: _Finding) -> Diagnostic:
    if block.title is not None:
        use = finding.node.entries["use"].value if isinstance(finding.node, yaml_tree.YamlMapping) else None
        word = use.text if isinstance(use, yaml_tree.YamlScalar) else "..."
        section = named_section(block.model, (finding.missing,))
        names = sorted(default_blocks(section or ""), key=_SIMPLEST.__ne__)
        hint = f"write {{use: {word}, {finding.missing}: {names[0] if names else '...'}}}"
        if names:
            hint += f"; there {'are' if len(names) > 1 else 'is'} {', '.join(names)} and those under '{section}:'"
        return block.place.diagnose(f"{block.title} needs {quote(finding.missing)}", "missing-key", hint)
    if isinstance(finding.node, yaml_tree.YamlSequence):
        models, count = models_at(block.model, finding.path[:-1]), _count(_length(finding.node), "entry", "entries")
        text = next(filter(None, (_description(model, str(finding.path[-1])) for model in models)), "")
        message = f"{quote(str(finding.path[-1]))} has only {count}"
        return finding.place.diagnose(message, "wrong-value", text[:1].lower() + text[1:].partition(". ")[0] or None)
    models = models_at(block.model, finding.path)
    descriptions = filter(None, (_description(model, finding.missing) for model in models))
    hint = f"add '{finding.missing}:'" + "".join(f", {text[:1].lower()}{text[1:].rstrip('.')}" for text in descriptions)
    return finding.place.diagnose(f"the key {quote(finding.missing)} is missing", "missing-key", hint)


def _description(model: type[BaseModel], key: str) -> str | None:
    fields = model.model_fields.items()
    return next((field.description for name, field in fields if key in (field.alias, name)), None)


_SAME_ELSEWHERE: Mapping[str, str] = dict.fromkeys(
    ("fields", "query_columns", "query_fields", "corpus_columns", "corpus_fields", "mapping", "column_map"), "columns"
)
"""The names of keys in other tools or earlier releases, and their names here."""


def _explain_unknown_key(block: CheckedBlock, finding: _Finding) -> Diagnostic:
    key = str(finding.path[-1])
    known = _known_keys(block, finding)
    if block.title is not None:
        takes = _list([known_key for known_key in known if known_key != "use"])
        return block.place.diagnose(f"{block.title} takes no {quote(key)}", "unknown-key", takes)
    return finding.place.diagnose(f"unknown key {quote(key)}", "unknown-key", _suggest_key(key, known) or _list(known))


def _suggest_key(key: str, known: Sequence[str]) -> str | None:
    """The key most similar to an unknown one, or the only key that contains it as a word: `base_url` for `url`."""
    twin = _SAME_ELSEWHERE.get(key)
    if twin in known:
        return f"did you mean '{twin}'?"
    having = [candidate for candidate in known if key.lower() in candidate.split("_")]
    return suggest(key, known) or (f"did you mean '{having[0]}'?" if len(having) == 1 else None)


def _known_keys(block: CheckedBlock, finding: _Finding) -> list[str]:
    models = models_at(block.model, finding.path[:-1])
    return [*dict.fromkeys(key for model in models for key in list_keys(model))]


def _explain_mismatch(
    finding: _Finding, expected: str, choices: Sequence[str] = (), hint: str | None = None
) -> Diagnostic:
    message = f"expected {expected}, found {describe(finding.node)}"
    return finding.place.diagnose(message, "wrong-type", hint or _hint_mismatch(finding.node, expected, choices))


def _hint_name(node: yaml_tree.YamlNode, section: ReferredSection) -> str:
    if isinstance(node, yaml_tree.YamlMapping):
        return f"declare the block with a name under '{section}:', and write the name here"
    if isinstance(node, yaml_tree.YamlSequence):
        (single,) = node.items if len(node.items) == 1 else (None,)
        return f"write {cut(single.text)}" if isinstance(single, yaml_tree.YamlScalar) else "it takes one name"
    return f"write the name of a block under '{section}:'" if node.value is None else f'quote it: "{cut(node.text)}"'


def _hint_names(block: CheckedBlock, finding: _Finding) -> str | None:
    if getattr(node := finding.node, "value", "") is None:
        return None
    if block.model is SpecNode and len(finding.path) == 1 and finding.path[0] in NAMED_SECTIONS:
        return f"give each block a name: {_example_block(finding.path[0], node)}"
    if isinstance(node, yaml_tree.YamlMapping) and node.entries and named_section(block.model, (*finding.path, 0)):
        values = [getattr(entry.value, "value", None) for entry in node.entries.values()]
        is_weighted = "weights" in list_keys(block.model) and all(isinstance(value, int | float) for value in values)
        rest = ", and the numbers under 'weights:'" if is_weighted else ""
        return f"write [{', '.join(map(cut, node.entries))}]{rest}"
    return _hint_keys(block, finding)


def _hint_keys(block: CheckedBlock, finding: _Finding) -> str | None:
    """A hint for a word or number where a mapping is expected: the key that takes it, or all keys if they are few."""
    models = [*models_at(block.model, finding.path)]
    if len(models) != 1 or not isinstance(finding.node, yaml_tree.YamlScalar):
        return None
    for name, field in models[0].model_fields.items():
        if finding.node.text in get_args(field.annotation):
            return f"write {{{field.alias or name}: {finding.node.text}}}"
    bound = _BOUND.fullmatch(finding.node.text.strip())
    if bound and {"metric", "min", "max"} <= models[0].model_fields.keys():
        return f"write {{metric: {cut(bound[1])}, {'max' if bound[2] == '<' else 'min'}: {bound[3] or 0.5}}}"
    if example := getattr(models[0], "EXAMPLE", None):
        return f"write {example}"
    return _list(list_keys(models[0])) if len(models[0].model_fields) <= _MOST_KEYS_HINTED else None


def _example_block(section: Any, node: yaml_tree.YamlNode) -> str:
    """The first entry of a value that should have been a mapping, as a named block."""
    first = node.items[0] if isinstance(node, yaml_tree.YamlSequence) and node.items else node
    use = first.entries["use"].value if isinstance(first, yaml_tree.YamlMapping) and "use" in first.entries else first
    word = cut(use.text) if isinstance(use, yaml_tree.YamlScalar) and use.text else "name"
    if word not in registry.words(section):
        return f"{word}: {{use: ...}}"
    return f"{word}: {{use: {word}{', ...' if isinstance(first, yaml_tree.YamlMapping) else ''}}}"


def _hint_mismatch(node: yaml_tree.YamlNode, expected: str, choices: Sequence[str]) -> str | None:
    if not isinstance(node, yaml_tree.YamlScalar):
        return "begin each entry with '- '" if expected == "a list" else None
    if node.value is None:
        return "write a value, or remove the key"
    if isinstance(node.value, str):
        near = suggest(node.value, choices) if choices else None
        return near or _hint_text(node, expected)
    if node.value is False and "none" in choices:
        return "write none"
    return f'quote it: "{cut(node.text)}"' if "text" in expected or node.text in choices else None


def _hint_text(node: yaml_tree.YamlScalar, expected: str) -> str | None:
    if "number" in expected and yaml_tree.is_number_elsewhere(node.text):
        return f"write {yaml_tree.spell_number(node.text)}: YAML 1.1 reads {cut(node.text)} as text"
    if expected == "a number" and (share := _PERCENTAGE.fullmatch(node.text.strip())):
        return f"write {float(share[1]) / 100:g}"
    if expected == "a list":
        bounds = _RANGE.fullmatch(node.text.strip())
        return f"write [{', '.join(bounds.groups())}]" if bounds else f"write [{cut(node.text)}]"
    if node.from_environment and "text" not in expected:
        return f"set the variable to {'true or false' if 'true' in expected else expected}"
    numeric = re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+", node.text) and "number" in expected
    if numeric or ("true or false" in expected and node.text.lower() in ("true", "false")):
        return "remove the quotes"
    return None


def _choices(finding: _Finding) -> list[str]:
    """The choices for a value, from pydantic's `'a', 'b' or 'c'`."""
    expected = str(finding.context.get("expected", ""))
    return re.findall(r"'((?:[^'\\]|\\.)*)'", expected) or [word for word in re.split(r", | or ", expected) if word]


def _join(words: Sequence[str]) -> str:
    return list_choices(words) or "something else"


def _list(keys: Sequence[str]) -> str | None:
    if not keys or len(keys) > _MOST_KEYS_SHOWN:
        return None
    return f"the known {'keys are' if len(keys) > 1 else 'key is'} {', '.join(keys)}"


def models_at(model: type[BaseModel], path: KeyPath) -> Iterator[type[BaseModel]]:
    return (arm for arm in _types_at(model, path) if isinstance(arm, type) and issubclass(arm, BaseModel))


def named_section(model: type[BaseModel], path: KeyPath) -> ReferredSection | None:
    return next((arm.section for arm in _types_at(model, path) if isinstance(arm, Reference)), None)


def _types_at(model: type[BaseModel], path: KeyPath) -> list[Any]:
    """The types that a key path can lead to, with the marks of annotations among them."""
    arms: list[Any] = [model]
    for step in path:
        arms = [arm for outer in arms for inner in _inner_types(outer, step) for arm in _split(inner)]
    return arms


def _split(kind: Any) -> Iterator[Any]:
    """The members of unions, and the types and marks of annotations."""
    if get_origin(kind) in (Union, UnionType, Annotated):
        for inner in get_args(kind):
            yield from _split(inner)
    else:
        yield kind


def _inner_types(kind: Any, step: str | int) -> Iterator[Any]:
    if get_origin(kind) is dict:
        yield get_args(kind)[-1]
    elif isinstance(step, int):
        yield from get_args(kind)[:1]
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if step in (field.alias, name):
                yield Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
