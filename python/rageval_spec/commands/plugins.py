"""What `rageval-spec judges`, `labels`, `systems` and others print: a section's words, or everything about one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from rageval_spec import registry
from rageval_spec.commands.known_models import describe, tabulate, to_json
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from rageval_spec.plugin import Plugin
    from rageval_spec.plugin.known_model import KnownModel


WIDTH = 100


def list_plugins(section: registry.Section) -> str:
    """One line per word of a section, with its summary."""
    words = registry.words(section)
    width = max(map(len, words)) + 2
    lines = [
        fill(summarize(section, word), WIDTH, initial_indent=f"{word:<{width}}", subsequent_indent=" " * width)
        for word in words
    ]
    return "\n".join([*lines, "", f"For details of one, run: rageval-spec {section} show WORD\n"])


def describe_plugin(section: registry.Section, name: str) -> str:
    """A plugin's summary, its keys, and how to write it.

    Args:
        section: where to look.
        name: its word in `use:`, or what other tools call it.

    Raises:
        UsageError: there is no such word.
    """
    word = _find_word(section, name)
    plugin = load(section, word)
    summary = fill(f"{word}: {summarize(section, word)}", WIDTH)
    parts = [summary, *(f"{head}\n{body}" for head, body in _sections(section, plugin))]
    return "\n\n".join(parts) + "\n"


def list_plugins_as_json(section: registry.Section) -> str:
    """The words of a section with their summaries, as a JSON object."""
    return _write_json({word: summarize(section, word) for word in registry.words(section)})


def describe_plugin_as_json(section: registry.Section, name: str) -> str:
    """What `describe_plugin` says, as a JSON object.

    Raises:
        UsageError: there is no such word.
    """
    word = _find_word(section, name)
    plugin = load(section, word)
    schema = plugin.node_type.model_json_schema(by_alias=True)
    required = set(schema.get("required", ()))
    keys = {key: value for key, value in schema["properties"].items() if key != "use"}
    return _write_json(
        {
            "word": word,
            "summary": summarize(section, word),
            "how": inspect.cleandoc(plugin.__doc__ or ""),
            "can": list(_list_tasks(plugin)),
            "keys": {key: {"required": key in required, **value} for key, value in keys.items()},
            "definitions": schema.get("$defs", {}),
            "write": _write_example(section, plugin),
            "known_as": list(plugin.known_as),
            "models": [to_json(model) for model in plugin.list_known_models()],
        }
    )


def describe_known_model(section: registry.Section, name: str, model: str, form: str) -> str:
    """The facts about one model and the YAML that uses it, as text or JSON.

    Args:
        section: where the plugin is.
        name: the plugin's word, or what other tools call it.
        model: the model's id in any case, or its part after the slash.
        form: `text` or `json`.

    Raises:
        UsageError: there is no such plugin, it knows no models, or not this one.
    """
    word = _find_word(section, name)
    found = _find_model(word, load(section, word).list_known_models(), model)
    return _write_json(to_json(found)) if form == "json" else describe(found)


def summarize(section: registry.Section, word: str) -> str:
    """The first paragraph of the docstring of a plugin's node."""
    paragraph = inspect.cleandoc(load(section, word).node_type.__doc__ or "").split("\n\n")[0]
    return re.sub(rf"^`{word}`: (\w)", lambda found: found.group(1).upper(), " ".join(paragraph.split()))


def load(section: registry.Section, word: str) -> type[Plugin[Any]]:
    plugin: type[Plugin[Any]] = registry.load(section, word)
    return plugin


def _find_model(word: str, models: Sequence[KnownModel], name: str) -> KnownModel:
    if not models:
        raise UsageError(f"the judge '{word}' knows no models by their names; leave out --model")
    asked = name.casefold()
    matches = [model for model in models if asked in (model.name.casefold(), model.name.casefold().partition("/")[2])]
    if not matches:
        names = [model.name for model in models]
        hint = suggest(name, names) or suggest(name, [one.partition("/")[2] for one in names])
        known = hint or f"list the known models with: rageval-spec judges show {word}"
        raise UsageError(f"the judge '{word}' does not know the model '{name}'; {known}")
    return matches[0]


def _find_word(section: registry.Section, name: str) -> str:
    from rageval_spec.spec.words import suggest_model

    words = registry.words(section)
    if name in words:
        return name
    folded = name.casefold().replace("-", "_")
    meant = next((word for word in words if folded == word or folded in load(section, word).known_as), None)
    if meant is None:
        singular = registry.name_one(section)
        hint = (
            suggest_model(section, name) or suggest(name, words) or f"the words of '{section}:' are {', '.join(words)}"
        )
        raise UsageError(f"there is no {singular} '{name}'; {hint}")
    return meant


def _sections(section: registry.Section, plugin: type[Plugin[Any]]) -> Iterator[tuple[str, str]]:
    if own := inspect.cleandoc(plugin.__doc__ or ""):
        yield "How it works", "\n\n".join(indent(" ".join(one.split())) for one in own.split("\n\n"))
    if tasks := list(_list_tasks(plugin)):
        yield "Can", "\n".join(indent(task, "- ") for task in tasks)
    if keys := list(describe_keys(plugin.node_type)):
        yield "Keys", "\n".join(keys)
    yield "Write", f"  {_write_example(section, plugin)}"
    if models := plugin.list_known_models():
        word = _name_word(section, plugin)
        yield (
            "Known models",
            f"{tabulate(models)}\n\n"
            + indent(f"For one of them, run: rageval-spec {section} show {word} --model NAME"),
        )
    if plugin.known_as:
        yield "Also known as", indent(", ".join(plugin.known_as))


def _list_tasks(plugin: type[Plugin[Any]]) -> Iterator[str]:
    """What a judge can do, in words; nothing for other plugins."""
    from rageval_spec.metrics.shared.judged import TASKS

    declared = getattr(plugin, "declared", ())
    return (task for ability, task in TASKS.items() if ability in declared)


def _name_word(section: registry.Section, plugin: type[Plugin[Any]]) -> str:
    return next(word for word in registry.words(section) if load(section, word) is plugin)


def _write_json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def _write_example(section: registry.Section, plugin: type[Plugin[Any]]) -> str:
    """The shortest block: `use:` and the keys that are required."""
    word = _name_word(section, plugin)
    fields = plugin.node_type.model_fields.items()
    needed = [f"{field.alias or name}: ..." for name, field in fields if name != "use" and field.is_required()]
    if section == "reports" and not needed:
        return f"reports: [{word}]"
    return f"{section}: {{my_{word}: {{{', '.join([f'use: {word}', *needed])}}}}}"


def describe_keys(node: type[BaseModel]) -> Iterator[str]:
    """One paragraph for each key of a node except `use`, required keys first: meaning, choices and default."""
    for name, field in sorted(node.model_fields.items(), key=lambda item: not item[1].is_required()):
        if name != "use":
            facts = [*_list_choices(field), _describe_default(field)]
            known = "; ".join(fact for fact in facts if fact)
            yield indent(f"{field.alias or name}: {field.description or ''}" + (f" ({known})" if known else ""), "- ")


def _list_choices(field: FieldInfo) -> Iterator[str]:
    """The choices of a key that accepts nothing else."""
    arms = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else (field.annotation,)
    arms = tuple(arm for arm in arms if arm is not type(None))
    if arms and all(get_origin(arm) is Literal for arm in arms):
        yield f"one of {', '.join(str(choice) for arm in arms for choice in get_args(arm))}"


def _describe_default(field: FieldInfo) -> str:
    from pydantic import BaseModel

    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = default.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not default:
            return f"keys: {', '.join(type(field.get_default(call_default_factory=True)).model_fields)}"
    return "" if default is None else f"default {_spell(default)}"


def _spell(value: object) -> str:
    """A default as it is written in YAML."""
    return json.dumps(value, ensure_ascii=False, default=str)


def indent(text: str, mark: str = "") -> str:
    """Wrap a paragraph and indent it by two spaces; its first line begins with the mark."""
    return fill(text, WIDTH, initial_indent=f"  {mark}", subsequent_indent="  " + " " * len(mark))
