"""What `rageval-spec metrics` prints: the list of metrics, and all there is to know about one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill

from rageval_spec import kernels, registry
from rageval_spec.commands.plugins import WIDTH, describe_keys, indent
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Metric, MetricGroup, MetricInfo

Plugin = type[Metric]  # type: ignore[type-arg]

GROUPS: Mapping[MetricGroup, str] = {
    "ranking": "Rankings, against judged documents",
    "answers": "Answers, as a judge or a rule sees them",
    "text": "Answers, against references",
    "operation": "Operation: what an answer takes",
    "other": "Others",
}
"""The headings of the list, in its order."""


def list_metrics() -> str:
    """A line a metric, by groups: its word and what it measures."""
    words = registry.words("metrics")
    width = max(map(len, words)) + 2
    sections = [
        "\n".join([f"{heading}:", *(_list_metric(word, width) for word in words if _plugin(word).group == group)])
        for group, heading in GROUPS.items()
        if any(_plugin(word).group == group for word in words)
    ]
    return "\n\n".join([*sections, "rageval-spec metrics show NAME shows one in full.\n"])


def _list_metric(word: str, width: int) -> str:
    summary = _plugin(word).info.summary
    return fill(summary, WIDTH, initial_indent=f"{word:<{width}}", subsequent_indent=" " * width)


def describe_metric(name: str) -> str:
    """Formula, edge cases, keys and source of a metric, by its word, an alias, or a name such as `ndcg_cut_10`.

    Raises:
        UsageError: no such metric.
    """
    word = _find_word(name)
    plugin = _plugin(word)
    sections = [f"{word}: {plugin.info.summary}", *(f"{head}\n{body}" for head, body in _sections(word, plugin))]
    return "\n\n".join(sections) + "\n"


def _find_word(name: str) -> str:
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
        hint = suggest(name, tuple(known))
        raise UsageError(f"there is no metric '{name}'; {hint}" if hint else str(error)) from error


def _find_whatever_its_parameters(name: str, known: Mapping[str, str]) -> str | None:
    """The word of a name such as `latency@p95`, `bleu(tokenize=char)` or `ROUGE-L`; None for a ranking measure's."""
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
    yield "Range", indent(f"{_range(info)}; {_direction(info)}; over the queries: the {info.statistic}")
    if aliases := _aliases(word, info):
        yield "Also known as", indent(", ".join(aliases))
    yield "Source", indent(info.source)


def _needs(plugin: Plugin) -> str | None:
    """What a query must have; None for metrics that always need the same, or for which it depends on their keys."""
    needs = getattr(plugin, "needs", None)
    return ", ".join(sorted(part.replace("_", " ") for part in needs)) if isinstance(needs, frozenset) else None


def _range(info: MetricInfo) -> str:
    low, high = info.bounds
    return (f"{low:g} to {high:g}" if high is not None else f"{low:g} and more") + (
        f" {info.unit}" if info.unit else ""
    )


def _direction(info: MetricInfo) -> str:
    words = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    return words[info.higher_is_better]


def _aliases(word: str, info: MetricInfo) -> Sequence[str]:
    known = [alias for alias, name in kernels.measure_aliases().items() if name == word]
    return sorted({*info.aliases, *known} - {word})


def _plugin(word: str) -> Plugin:
    plugin: Plugin = registry.load("metrics", word)
    return plugin
