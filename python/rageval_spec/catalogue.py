"""What `rageval-spec metrics` prints: the list of metrics, and all there is to know about one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from rageval_spec import kernels, registry
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Metric, MetricInfo

WIDTH = 100
Plugin = type[Metric]  # type: ignore[type-arg]


def list_metrics() -> str:
    """A line a metric: its word and what it measures."""
    words = registry.words("metrics")
    width = max(map(len, words)) + 2
    lines = [
        fill(_plugin(word).info.summary, WIDTH, initial_indent=f"{word:<{width}}", subsequent_indent=" " * width)
        for word in words
    ]
    return "\n".join([*lines, "", "rageval-spec metrics show NAME tells more of one.", ""])


def describe_metric(name: str) -> str:
    """Formula, edge cases, keys and source of a metric, by its word, an alias or a measure such as `ndcg_cut_10`.

    Raises:
        UsageError: no such metric.
    """
    word = _find_word(name)
    plugin = _plugin(word)
    sections = [f"{word}: {plugin.info.summary}", *(f"{head}\n{body}" for head, body in _sections(word, plugin))]
    return "\n\n".join(sections) + "\n"


def _find_word(name: str) -> str:
    words = registry.words("metrics")
    if name in words:
        return name
    aliases = {alias: word for word in words for alias in _plugin(word).info.aliases}
    if name in aliases:
        return aliases[name]
    try:
        return kernels.parse_measure(name).name
    except UsageError as error:
        hint = suggest(name, (*words, *aliases))
        raise UsageError(f"there is no metric '{name}'; {hint}" if hint else str(error)) from error


def _sections(word: str, plugin: Plugin) -> Iterator[tuple[str, str]]:
    info = plugin.info
    yield "Formula", _indent(info.formula)
    yield "Edge cases", "\n".join(_indent(case, "- ") for case in info.edge_cases)
    if keys := list(_keys(plugin)):
        yield "Keys", "\n".join(keys)
    yield "Range", _indent(f"{_range(info)}; {_direction(info)}; over the queries: the {info.statistic}")
    if aliases := _aliases(word, info):
        yield "Also known as", _indent(", ".join(aliases))
    yield "Source", _indent(info.source)


def _keys(plugin: Plugin) -> Iterator[str]:
    for name, field in plugin.node_type.model_fields.items():
        if name == "use":
            continue
        needed = (
            "required" if field.is_required() else f"default {field.default!r}" if field.default is not None else ""
        )
        text = f"{field.alias or name}: {field.description or ''}" + (f" ({needed})" if needed else "")
        yield _indent(text, "- ")


def _range(info: MetricInfo) -> str:
    low, high = info.bounds
    return f"{low:g} to {high:g}" if high is not None else f"{low:g} and more"


def _direction(info: MetricInfo) -> str:
    words = {True: "higher is better", False: "lower is better", None: "neither high nor low is better"}
    return words[info.higher_is_better]


def _aliases(word: str, info: MetricInfo) -> Sequence[str]:
    known = [alias for alias, name in kernels.measure_aliases().items() if name == word]
    return sorted({*info.aliases, *known} - {word})


def _indent(text: str, mark: str = "") -> str:
    return fill(text, WIDTH, initial_indent=f"  {mark}", subsequent_indent="  " + " " * len(mark))


def _plugin(word: str) -> Plugin:
    plugin: Plugin = registry.load("metrics", word)
    return plugin
