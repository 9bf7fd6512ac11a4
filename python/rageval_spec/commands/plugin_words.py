"""The commands `list` and `explain`: the words of a spec, and one of them in full.

A judge that knows published models also has a table of them, and everything about one.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill, indent
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin

import click

from rageval_spec import kernels, registry
from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.spec.diagnostic_codes import CODES, explain_code

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from rageval_spec.plugin import Metric, MetricGroup, MetricInfo, Plugin
    from rageval_spec.plugin.plugin import KnownModel


WIDTH = 100
METRIC_GROUPS: Mapping[MetricGroup, str] = {
    "ranking": "Rankings, against judged documents",
    "answers": "Answers, assessed by a judge or a rule",
    "text": "Answers, compared with references",
    "operation": "Operation: time, tokens, cost and errors",
    "other": "Other",
}
"""The headings of the list of metrics, in order."""


@click.command("list")
@click.argument("section", type=click.Choice(registry.SECTIONS), required=False)
@shared.form_option
def list_words(section: registry.Section | None, form: str) -> int:
    """List the words that `use:` accepts in a spec.

    SECTION is one of its sections; without it, the words of all are listed.

    \b
    rageval-spec list
    rageval-spec list metrics
    """
    if form == "json":
        chosen = registry.SECTIONS if section is None else (section,)
        found: dict[str, Mapping[str, object]] = {
            one: {word: summarize(one, word) for word in registry.words(one)} for one in chosen
        }
        console.write(_write_json(found if section is None else found[section]))
    else:
        console.show(list_sections() if section is None else list_plugins(section))
    return PASSED


@click.command("explain")
@click.argument("name")
@click.option("--model", metavar="NAME", help="What a judge knows about one published model.")
@shared.form_option
def explain(name: str, model: str | None, form: str) -> int:
    """Explain a word of a spec, and how to write it.

    It shows the keys and their defaults. A metric can be called by any name that other tools give it. A word of
    several sections needs its section. Keys of the spec itself are explained too, and so are those of its own blocks.
    The code in brackets at the end of an error in a spec is explained, too.

    \b
    rageval-spec explain ndcg
    rageval-spec explain gates
    rageval-spec explain unknown-key
    rageval-spec explain datasets.csv
    rageval-spec explain nli --model lytang/MiniCheck-Flan-T5-Large
    """
    if name in registry.SECTIONS and model is None:
        return cast("int", list_words.callback(name, form))  # type: ignore[misc]
    if (code := name.strip("[]")) in CODES:
        console.write_form(explain_code(code, form), form)
        return PASSED
    if model is None and (keys := find_keys(name)):
        console.write_form(_write_json(keys) if form == "json" else describe_spec_keys(keys), form)
        return PASSED
    if model is None and (f"{name}s" in registry.SECTIONS or find_keys(f"{name}s")) and not _is_word(name):
        return cast("int", explain.callback(f"{name}s", None, form))  # type: ignore[misc]
    found = find_words(name)
    if len(found) > 1:
        text = _list_homonyms(name, found, form)
    elif model is not None:
        text = describe_known_model(*found[0], model, form)
    else:
        text = (describe_plugin_as_json if form == "json" else describe_plugin)(*found[0])
    console.write_form(text, form)
    return PASSED


def _is_word(name: str) -> bool:
    return any(name in registry.words(section) for section in registry.SECTIONS)


def find_keys(name: str) -> dict[str, Any]:
    """What the JSON Schema says of a key of the spec itself, or of its own blocks: `resume`, `gates.min_scored`.

    A word of `use:` comes before a key of the same name. Each key has the name by which it can be asked for.
    """
    from rageval_spec.spec.blocks.spec_node import SpecNode

    if _is_word(name):
        return {}
    schema = SpecNode.model_json_schema(by_alias=True)
    found = {key: value for key, value in schema["properties"].items() if key not in registry.SECTIONS}
    for key, value in [*found.items()]:
        inner = schema["$defs"].get((re.findall(r"#/\$defs/(\w+)", json.dumps(value)) or [""])[-1], {})
        for own, described in inner.get("properties", {}).items():
            found[f"{key}.{own}"] = described
    if name in found:
        return {key: value for key, value in found.items() if key == name or key.startswith(f"{name}.")}
    return {key: value for key, value in found.items() if key.endswith(f".{name}")}


def describe_spec_keys(keys: Mapping[str, Any]) -> str:
    lines = []
    for key, value in keys.items():
        default = value.get("default")
        told = f" (default {_spell(default)})" if isinstance(default, str | int | float) else ""
        lines.append(indent_paragraph(f"{key}: {value.get('description', '')}{told}", "- ") + "\n")
    return "".join(lines)


def find_words(name: str) -> list[tuple[registry.Section, str]]:
    """The sections that know a name, each with its word for it.

    The name is a word, or what other tools call it: `csv`, `recip_rank`, `ndcg@10`; or it has its section:
    `datasets.csv`.
    """
    from rageval_spec.spec.blocks.plugin_lookup import suggest_metric

    section, _, rest = name.partition(".")
    if rest and section in registry.SECTIONS:
        return [(section, find_word(section, rest))]
    exact = [(section, name) for section in registry.SECTIONS if name in registry.words(section)]
    if found := exact or [(section, word) for section in registry.SECTIONS if (word := _find_known_as(section, name))]:
        return found
    every = (*CODES, *(word for section in registry.SECTIONS for word in registry.words(section)))
    hint = suggest_metric(name) or (None if re.search("[@(]", name) else suggest(name, every)) or _suggest_metric(name)
    raise UsageError(f"there is no word '{name}'; {hint or 'to list all words, run: rageval-spec list'}")


def find_word(section: registry.Section, name: str) -> str:
    """The word of a section for a name. Raises `UsageError` if there is none."""
    from rageval_spec.spec.blocks.plugin_lookup import suggest_model

    words = registry.words(section)
    if meant := name if name in words else _find_known_as(section, name):
        return meant
    hint = _suggest_metric(name) if section == "metrics" else suggest_model(section, name)
    hint = hint or suggest(name, words) or f"the words of '{section}:' are {', '.join(words)}"
    raise UsageError(f"there is no {registry.name_one(section)} '{name}'; {hint}")


def _find_known_as(section: registry.Section, name: str) -> str | None:
    """The word that other tools call `name`; for a metric also by its alias or its parameters, as in `latency@p95`."""
    words = registry.words(section)
    if section == "metrics":
        return _find_metric(name)
    folded = name.casefold().replace("-", "_")
    return next((word for word in words if folded == word or folded in load(section, word).known_as), None)


def _find_metric(name: str) -> str | None:
    known = _list_metric_names()
    if name in known:
        return known[name]
    try:
        return kernels.parse_measure(name).name
    except UsageError:
        start = re.split(r"[@(]", name, maxsplit=1)[0].casefold()
        word = {other.casefold(): word for other, word in known.items()}.get(start)
        return None if word is None or load_metric(word).group == "ranking" else word


def _list_metric_names() -> Mapping[str, str]:
    words = registry.words("metrics")
    return {alias: word for word in words for alias in load_metric(word).info.aliases} | {word: word for word in words}


def _suggest_metric(name: str) -> str | None:
    from rageval_spec.spec.blocks.plugin_lookup import suggest_metric

    if meant := suggest_metric(name) or suggest(name, tuple(_list_metric_names())):
        return meant
    try:
        kernels.parse_measure(name)
    except UsageError as error:
        return str(error).removeprefix(f"unknown measure '{name}'").removeprefix("; ") or None
    return None


def _list_homonyms(name: str, found: Sequence[tuple[registry.Section, str]], form: str) -> str:
    """A line for each section that has the word, with what it means there."""
    summaries = {f"{section}.{word}": summarize(section, word) for section, word in found}
    if form == "json":
        return _write_json(summaries)
    advice = f"For one of them, run: rageval-spec explain {next(iter(summaries))}"
    return "\n".join([f"'{name}' is a word of several sections.", "", *_tabulate_words(summaries), "", advice, ""])


def list_sections() -> str:
    width = max(map(len, registry.SECTIONS)) + 2
    lines = [
        fill(", ".join(registry.words(section)), WIDTH, initial_indent=f"{section:<{width}}",
             subsequent_indent=" " * width, break_on_hyphens=False)
        for section in registry.SECTIONS
    ]  # fmt: skip
    advice = "For what each word of a section does, run: rageval-spec list SECTION"
    return "\n".join([*lines, "", advice, "For details of one word, run: rageval-spec explain WORD\n"])


def list_plugins(section: registry.Section) -> str:
    """One line per word of a section, with its summary; metrics by what they measure."""
    summaries = {word: summarize(section, word) for word in registry.words(section)}
    advice = "For details of one, run: rageval-spec explain WORD\n"
    if section != "metrics":
        return "\n".join([*_tabulate_words(summaries), "", advice])
    width = max(map(len, summaries)) + 2
    groups = [
        "\n".join([f"{heading}:", *_tabulate_words(members, width)])
        for group, heading in METRIC_GROUPS.items()
        if (members := {word: text for word, text in summaries.items() if load_metric(word).group == group})
    ]
    return "\n\n".join([*groups, advice])


def _tabulate_words(summaries: Mapping[str, str], width: int = 0) -> Iterator[str]:
    width = width or max(map(len, summaries)) + 2
    for word, summary in summaries.items():
        yield fill(summary, WIDTH, initial_indent=f"{word:<{width}}", subsequent_indent=" " * width)


def describe_plugin(section: registry.Section, name: str) -> str:
    """What a word means, its keys, and how to write it; for a metric its formula, edge cases and source.

    `name` is its word in `use:`, or what other tools call it.
    """
    word = find_word(section, name)
    summary = fill(f"{word}: {summarize(section, word)}", WIDTH)
    keys = list(describe_keys(load(section, word).node_type))
    if section == "metrics":
        parts = _list_metric_parts(word, load_metric(word), keys)
    else:
        parts = _list_parts(section, word, load(section, word), keys)
    shown = ("\n".join([head, *lines]) for head, lines in parts.items() if lines)
    return "\n\n".join([summary, *shown]) + "\n"


def describe_plugin_as_json(section: registry.Section, name: str) -> str:
    word = find_word(section, name)
    plugin = load(section, word)
    schema = plugin.node_type.model_json_schema(by_alias=True)
    required = set(schema.get("required", ()))
    keys = {key: value for key, value in schema["properties"].items() if key != "use"}
    content: dict[str, object] = {"word": word, "summary": summarize(section, word)}
    content |= {"since": "".join(_list_since(section, word)).strip(), "write": _write_example(section, word, plugin)}
    if section == "metrics":
        info = load_metric(word).info
        content |= {
            "formula": info.formula,
            "edge_cases": load_metric(word).list_edge_cases(),
            "needs": _needs(load_metric(word)),
            "range": list(info.bounds),
            "unit": info.unit,
            "higher_is_better": info.higher_is_better,
            "statistic": info.statistic,
            "known_as": list(_aliases(word, info)),
            "source": info.source,
        }
    else:
        content |= {
            "how": inspect.cleandoc(plugin.__doc__ or ""),
            "can": list(_list_tasks(plugin)),
            "known_as": list(plugin.known_as),
            "models": [to_json(model) for model in plugin.list_known_models()],
        }
    content["keys"] = {key: {"required": key in required, **value} for key, value in keys.items()}
    return _write_json({**content, "definitions": schema.get("$defs", {})})


def describe_known_model(section: registry.Section, name: str, model: str, form: str) -> str:
    """The facts about one model and the YAML that uses it, as text or JSON.

    `model` is the model's id in any case, or its part after the slash.
    """
    word = find_word(section, name)
    found = _find_model(word, load(section, word).list_known_models(), model)
    return _write_json(to_json(found)) if form == "json" else describe(found)


def summarize(section: registry.Section, word: str) -> str:
    """What a word means, in a sentence: a metric's summary, else the first paragraph of the docstring of its node."""
    if section == "metrics":
        return load_metric(word).info.summary
    paragraph = inspect.cleandoc(load(section, word).node_type.__doc__ or "").split("\n\n")[0]
    return re.sub(rf"^`{word}`: (\w)", lambda found: found.group(1).upper(), " ".join(paragraph.split()))


def load(section: registry.Section, word: str) -> type[Plugin[Any]]:
    plugin: type[Plugin[Any]] = registry.load(section, word)
    return plugin


def load_metric(word: str) -> type[Metric[Any]]:
    plugin: type[Metric[Any]] = registry.load("metrics", word)
    return plugin


def _find_model(word: str, models: Sequence[KnownModel], name: str) -> KnownModel:
    if not models:
        raise UsageError(f"'{word}' knows no models by their names; leave out --model")
    asked = name.casefold()
    matches = [model for model in models if asked in (model.name.casefold(), model.name.casefold().partition("/")[2])]
    if not matches:
        names = [model.name for model in models]
        hint = suggest(name, names) or suggest(name, [one.partition("/")[2] for one in names])
        known = hint or f"list the known models with: rageval-spec explain {word}"
        raise UsageError(f"'{word}' does not know the model '{name}'; {known}")
    return matches[0]


def _list_parts(
    section: registry.Section, word: str, plugin: type[Plugin[Any]], keys: list[str]
) -> dict[str, list[str]]:
    paragraphs = inspect.cleandoc(plugin.__doc__ or "").split("\n\n") if plugin.__doc__ else []
    models = plugin.list_known_models()
    advice = indent_paragraph(f"For one of them, run: rageval-spec explain {word} --model NAME")
    return {
        "How it works": ["\n\n".join(indent_paragraph(" ".join(one.split())) for one in paragraphs)]
        if paragraphs
        else [],
        "Can": [indent_paragraph(task, "- ") for task in _list_tasks(plugin)],
        "Keys": keys,
        "Write": [f"  {_write_example(section, word, plugin)}"],
        "Known models": [tabulate(models), "", advice] if models else [],
        "Also known as": [indent_paragraph(", ".join(plugin.known_as))] if plugin.known_as else [],
        "Since": _list_since(section, word),
    }


def _list_since(section: registry.Section, word: str) -> list[str]:
    """The release of this package that brought a word; nothing for words of other packages."""
    return [f"  {load(section, word).since}"] if word in registry.builtin_words(section) else []


def _list_tasks(plugin: type[Plugin[Any]]) -> Iterator[str]:
    """What a judge can do, in words; nothing for other plugins."""
    from rageval_spec.metrics.shared.judged_metrics import TASKS

    declared = getattr(plugin, "declared", ())
    return (task for ability, task in TASKS.items() if ability in declared)


def _write_json(content: Mapping[str, object]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def _write_example(section: registry.Section, word: str, plugin: type[Plugin[Any]]) -> str:
    """The shortest block: `use:` and the keys that are required."""
    fields = plugin.node_type.model_fields.items()
    needed = [f"{field.alias or name}: ..." for name, field in fields if name != "use" and field.is_required()]
    if section in ("reports", "metrics") and not needed:
        return f"{section}: [{word}]"
    block = f"{{{', '.join([f'use: {word}', *needed])}}}"
    if section == "metrics":
        return f"metrics: [{block}]"
    return f"monitor: {{notify: [{block}]}}" if section == "notifiers" else f"{section}: {{my_{word}: {block}}}"


def describe_keys(node: type[BaseModel]) -> Iterator[str]:
    """One paragraph for each key of a node except `use`, required keys first: meaning, choices and default."""
    for name, field in sorted(node.model_fields.items(), key=lambda item: not item[1].is_required()):
        if name != "use":
            facts = [*_list_choices(field), _describe_default(field)]
            known = "; ".join(fact for fact in facts if fact)
            yield indent_paragraph(
                f"{field.alias or name}: {field.description or ''}" + (f" ({known})" if known else ""), "- "
            )


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


def indent_paragraph(text: str, mark: str = "") -> str:
    """Wrap a paragraph and indent it by two spaces; its first line begins with the mark."""
    return fill(text, WIDTH, initial_indent=f"  {mark}", subsequent_indent="  " + " " * len(mark))


def tabulate(models: Sequence[KnownModel]) -> str:
    heads = ("Model", *models[0].columns)
    rows = [heads, *((model.name, *model.columns.values()) for model in models)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(f"  {line}" for line in lines)


def to_json(model: KnownModel) -> dict[str, Any]:
    return {
        "name": model.name,
        **{key.lower().replace(" ", "_"): value for key, value in {**model.columns, **model.facts}.items()},
        "sources": list(model.sources),
        "read": model.read.isoformat(),
        "example": model.example,
    }


def describe(model: KnownModel) -> str:
    facts = {**model.columns, **model.facts, "Read": model.read.isoformat()}
    width = max(map(len, facts)) + 2
    lines = [f"  {key:<{width}}{value}" for key, value in facts.items() if value]
    parts = [f"{model.name}\n" + "\n".join(lines), "Sources\n" + "\n".join(f"  {one}" for one in model.sources)]
    if model.example:
        parts.append(f"Write\n{indent(model.example, '  ')}")
    return "\n\n".join(parts) + "\n"


def _list_metric_parts(word: str, plugin: type[Metric[Any]], keys: list[str]) -> dict[str, list[str]]:
    info, needs = plugin.info, _needs(plugin)
    (low, high), aliases = info.bounds, _aliases(word, info)
    values = (f"{low:g} to {high:g}" if high is not None else f"{low:g} or more") + (
        f" {info.unit}" if info.unit else ""
    )
    better = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    range_ = f"{values}; {better[info.higher_is_better]}; aggregated over the queries as the {info.statistic}"
    return {
        "Formula": [indent_paragraph(info.formula)],
        "Edge cases": [indent_paragraph(case, "- ") for case in plugin.list_edge_cases()],
        "Keys": keys,
        "Needs": [indent_paragraph(needs)] if needs else [],
        "Range": [indent_paragraph(range_)],
        "Also known as": [indent_paragraph(", ".join(aliases))] if aliases else [],
        "Write": [f"  {_write_example('metrics', word, plugin)}"],
        "Source": [indent_paragraph(info.source)],
        "Since": _list_since("metrics", word),
    }


def _needs(plugin: type[Metric[Any]]) -> str | None:
    """What a query must have to be scored; None for ranking metrics, and where it depends on the metric's keys."""
    needs = getattr(plugin, "needs", None)
    return ", ".join(sorted(part.replace("_", " ") for part in needs)) if isinstance(needs, frozenset) else None


def _aliases(word: str, info: MetricInfo) -> Sequence[str]:
    known = [alias for alias, name in kernels.measure_aliases().items() if name == word]
    return sorted({*info.aliases, *known} - {word})
