"""What `rageval-spec metrics` prints: the list of metrics, or everything about one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from rageval_spec import kernels, registry
from rageval_spec.commands import console
from rageval_spec.commands.front import Front
from rageval_spec.commands.plugins import WIDTH, describe_keys, indent
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import PASSED, UsageError

if TYPE_CHECKING:
    from rageval_spec.plugin import Metric, MetricGroup, MetricInfo


Plugin: TypeAlias = "type[Metric[Any]]"

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
    word = _find_word(name)
    plugin = _plugin(word)
    sections = [f"{word}: {plugin.info.summary}", *(f"{head}\n{body}" for head, body in _sections(word, plugin))]
    return "\n\n".join(sections) + "\n"


def _find_word(name: str) -> str:
    from rageval_spec.spec.words import suggest_metric

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


def _sections(word: str, plugin: Plugin) -> Iterator[tuple[str, str]]:
    info = plugin.info
    yield "Formula", indent(info.formula)
    yield "Edge cases", "\n".join(indent(case, "- ") for case in info.edge_cases)
    if keys := list(describe_keys(plugin.node_type)):
        yield "Keys", "\n".join(keys)
    if needs := _needs(plugin):
        yield "Needs", indent(needs)
    yield "Range", indent(f"{_range(info)}; {_direction(info)}; aggregated over the queries as the {info.statistic}")
    if aliases := _aliases(word, info):
        yield "Also known as", indent(", ".join(aliases))
    yield "Source", indent(info.source)


def _needs(plugin: Plugin) -> str | None:
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


def _plugin(word: str) -> Plugin:
    plugin: Plugin = registry.load("metrics", word)
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
