"""The commands that describe plugins, such as `metrics` and `judges`: a section's words, or one in full.

For a plugin that knows published models, they print a table of all of them, or everything about one.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill, indent
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union, get_args, get_origin

import click

from rageval_spec import kernels, registry
from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import PASSED, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from rageval_spec.plugin import Metric, MetricGroup, MetricInfo, Plugin
    from rageval_spec.plugin.plugin import KnownModel


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
    from rageval_spec.spec.blocks.plugin_lookup import suggest_model

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
        yield "How it works", "\n\n".join(indent_paragraph(" ".join(one.split())) for one in own.split("\n\n"))
    if tasks := list(_list_tasks(plugin)):
        yield "Can", "\n".join(indent_paragraph(task, "- ") for task in tasks)
    if keys := list(describe_keys(plugin.node_type)):
        yield "Keys", "\n".join(keys)
    yield "Write", f"  {_write_example(section, plugin)}"
    if models := plugin.list_known_models():
        word = _name_word(section, plugin)
        yield (
            "Known models",
            f"{tabulate(models)}\n\n"
            + indent_paragraph(f"For one of them, run: rageval-spec {section} show {word} --model NAME"),
        )
    if plugin.known_as:
        yield "Also known as", indent_paragraph(", ".join(plugin.known_as))


def _list_tasks(plugin: type[Plugin[Any]]) -> Iterator[str]:
    """What a judge can do, in words; nothing for other plugins."""
    from rageval_spec.metrics.shared.judged_metrics import TASKS

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
    """A table of the models, one line each, as wide as its content."""
    heads = ("Model", *models[0].columns)
    rows = [heads, *((model.name, *model.columns.values()) for model in models)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(f"  {line}" for line in lines)


def to_json(model: KnownModel) -> dict[str, Any]:
    """The facts about a model in JSON types."""
    return {
        "name": model.name,
        **{key.lower().replace(" ", "_"): value for key, value in {**model.columns, **model.facts}.items()},
        "sources": list(model.sources),
        "read": model.read.isoformat(),
        "example": model.example,
    }


def describe(model: KnownModel) -> str:
    """The facts about a model, their sources, and the YAML that uses it."""
    facts = {**model.columns, **model.facts, "Read": model.read.isoformat()}
    width = max(map(len, facts)) + 2
    lines = [f"  {key:<{width}}{value}" for key, value in facts.items() if value]
    parts = [f"{model.name}\n" + "\n".join(lines), "Sources\n" + "\n".join(f"  {one}" for one in model.sources)]
    if model.example:
        parts.append(f"Write\n{indent(model.example, '  ')}")
    return "\n\n".join(parts) + "\n"


def _make_group(section: Any, noun: str, word: str) -> click.Group:
    """The commands of a section; a block of it is called `noun`, and `word` is for the examples."""

    @click.group(
        section,
        invoke_without_command=True,
        help=_write_help(f"List the {section}, or show one.", f"{section}", f"{section} show {word}"),
    )
    @click.pass_context
    def group(ctx: click.Context) -> int:
        return _list(section, "text") if ctx.invoked_subcommand is None else PASSED

    @group.command("list", help=_write_help(f"List the {section}.", f"{section} list --format json"))
    @shared.form_option
    def list_all(form: str) -> int:
        return _list(section, form)

    group.add_command(_make_show(section, noun, word))
    return group


def _make_show(section: Any, noun: str, word: str) -> click.Command:
    more = (f"{section} show nli --model lytang/MiniCheck-Flan-T5-Large",) if section == "judges" else ()
    summary = f"Show what a {noun} does, its keys and their defaults."
    if more:
        summary += " For a judge that knows models by their names, also what it knows about them."

    @click.command("show", help=_write_help(summary, f"{section} show {word}", *more))
    @click.argument("word")
    @_model_option(section)
    @shared.form_option
    def show_one(word: str, form: str, model: str | None = None) -> int:
        if model is not None:
            text = describe_known_model(section, word, model, form)
        else:
            text = describe_plugin_as_json(section, word) if form == "json" else describe_plugin(section, word)
        console.write(text)
        return PASSED

    return show_one


def _model_option(section: str) -> Callable[[Any], Any]:
    """Add `--model` to the command of a section whose plugins know models by their names."""
    if section != "judges":
        return lambda command: command
    return click.option("--model", metavar="NAME", help="Show what the judge knows about one published model.")


def _list(section: Any, form: str) -> int:
    console.write(list_plugins_as_json(section) if form == "json" else list_plugins(section))
    return PASSED


def _write_help(summary: str, *examples: str) -> str:
    return "\n".join([f"{summary}\n\n\b", *(f"rageval-spec {example}" for example in examples)])


datasets = _make_group("datasets", "dataset", "jsonl")
systems = _make_group("systems", "system", "http")
judges = _make_group("judges", "judge", "claims")
labels = _make_group("labels", "source of labels", "csv")
reports = _make_group("reports", "report", "markdown")


MetricClass: TypeAlias = "type[Metric[Any]]"

GROUPS: Mapping[MetricGroup, str] = {
    "ranking": "Rankings, against judged documents",
    "answers": "Answers, assessed by a judge or a rule",
    "text": "Answers, compared with references",
    "operation": "Operation: time, tokens, cost and errors",
    "other": "Other",
}
"""The headings of the list, in order."""


def list_metrics() -> str:
    """One line per metric, grouped: its word and what it measures."""
    words = registry.words("metrics")
    width = max(map(len, words)) + 2
    sections = [
        "\n".join([f"{heading}:", *(_list_metric(word, width) for word in words if _plugin(word).group == group)])
        for group, heading in GROUPS.items()
        if any(_plugin(word).group == group for word in words)
    ]
    return "\n\n".join([*sections, "For details of one, run: rageval-spec metrics show NAME\n"])


def _list_metric(word: str, width: int) -> str:
    summary = _plugin(word).info.summary
    return fill(summary, WIDTH, initial_indent=f"{word:<{width}}", subsequent_indent=" " * width)


def describe_metric(name: str) -> str:
    """The formula, edge cases, keys and source of a metric.

    Args:
        name: its word, an alias, or a full name such as `ndcg_cut_10`.

    Raises:
        UsageError: there is no such metric.
    """
    word = _find_metric(name)
    plugin = _plugin(word)
    sections = [f"{word}: {plugin.info.summary}", *(f"{head}\n{body}" for head, body in _metric_sections(word, plugin))]
    return "\n\n".join(sections) + "\n"


def _find_metric(name: str) -> str:
    from rageval_spec.spec.blocks.plugin_lookup import suggest_metric

    words = registry.words("metrics")
    known = {alias: word for word in words for alias in _plugin(word).info.aliases} | {word: word for word in words}
    if name in known:
        return known[name]
    try:
        return kernels.parse_measure(name).name
    except UsageError as error:
        word = _find_whatever_its_parameters(name, known)
        if word is not None:
            return word
        hint = suggest_metric(name) or suggest(name, tuple(known))
        raise UsageError(f"there is no metric '{name}'; {hint}" if hint else str(error)) from error


def _find_whatever_its_parameters(name: str, known: Mapping[str, str]) -> str | None:
    """The word of a name such as `latency@p95`, `bleu(tokenize=char)` or `ROUGE-L`; None for a ranking measure."""
    start = re.split(r"[@(]", name, maxsplit=1)[0].casefold()
    word = {other.casefold(): word for other, word in known.items()}.get(start)
    return None if word is None or _plugin(word).group == "ranking" else word


def _metric_sections(word: str, plugin: MetricClass) -> Iterator[tuple[str, str]]:
    info = plugin.info
    yield "Formula", indent_paragraph(info.formula)
    yield "Edge cases", "\n".join(indent_paragraph(case, "- ") for case in info.edge_cases)
    if keys := list(describe_keys(plugin.node_type)):
        yield "Keys", "\n".join(keys)
    if needs := _needs(plugin):
        yield "Needs", indent_paragraph(needs)
    yield (
        "Range",
        indent_paragraph(f"{_range(info)}; {_direction(info)}; aggregated over the queries as the {info.statistic}"),
    )
    if aliases := _aliases(word, info):
        yield "Also known as", indent_paragraph(", ".join(aliases))
    yield "Source", indent_paragraph(info.source)


def _needs(plugin: MetricClass) -> str | None:
    """What a query must have to be scored; None for ranking metrics, and where it depends on the metric's keys."""
    needs = getattr(plugin, "needs", None)
    return ", ".join(sorted(part.replace("_", " ") for part in needs)) if isinstance(needs, frozenset) else None


def _range(info: MetricInfo) -> str:
    low, high = info.bounds
    return (f"{low:g} to {high:g}" if high is not None else f"{low:g} or more") + (f" {info.unit}" if info.unit else "")


def _direction(info: MetricInfo) -> str:
    words = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    return words[info.higher_is_better]


def _aliases(word: str, info: MetricInfo) -> Sequence[str]:
    known = [alias for alias, name in kernels.measure_aliases().items() if name == word]
    return sorted({*info.aliases, *known} - {word})


def _plugin(word: str) -> MetricClass:
    plugin: MetricClass = registry.load("metrics", word)
    return plugin


@click.group(cls=Front, invoke_without_command=True)
@click.pass_context
def metrics(ctx: click.Context) -> int:
    """List the metrics, or show one.

    \b
    rageval-spec metrics
    rageval-spec metrics show ndcg
    """
    if ctx.invoked_subcommand is None:
        console.show(list_metrics())
    return PASSED


@metrics.command()
@click.argument("name")
def show(name: str) -> int:
    """Show a metric's formula, edge cases, keys and source.

    \b
    rageval-spec metrics show ndcg
    rageval-spec metrics show recip_rank
    """
    console.show(describe_metric(name))
    return PASSED
