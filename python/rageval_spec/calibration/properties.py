"""What answers are like: the numbers that a judge's error is compared with."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.judging.language import NAMES, find_language
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

FEWEST = 10
"""The fewest labelled items with, and without, a property that is compared: a system, a language, a slice."""
LANGUAGE_COLUMN = "language"
"""The column of the questions that says their language."""
_UNITS = (100, 10, 1)
"""By how many words lengths are compared: the most of which the longest answer has twice as many."""
_KEY = ("dataset", "system", "query_id")

Samples: TypeAlias = Mapping[Item, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Property:
    """One number for each labelled item.

    Attributes:
        name: `length`, `contexts`, `evidence`, `system v2`, `language de`, `style`, `slice difficulty=hard`.
        change: what one unit more is, in words: `100 more words make`.
        numbers: in the order of the items.
        than: what is compared, behind the effect: ` than others`.
        tells_models_apart: whether it is another name for the model that wrote the answer: its system, or its style.
        is_shown: False for a group of rests, which only keeps them out of the group that others are compared with.
    """

    name: str
    change: str
    numbers: Sequence[float]
    than: str = ""
    tells_models_apart: bool = False
    is_shown: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A property that could not be compared, and why not."""

    name: str
    reason: str


def list_properties(evaluation: Evaluation, joined: Joined, samples: Samples) -> Iterator[Property | LeftOut]:
    """The properties of the labelled items but their slices, those that matter most first."""
    rows = [samples[item] for item in joined.items]
    claims = _read_claims(evaluation, joined)
    yield _measure_length(joined, rows, claims)
    yield from _compare_systems(evaluation, joined)
    yield Property("contexts", "One more context makes", [float(len(row.get("contexts") or ())) for row in rows])
    yield from _place_evidence(joined, claims)
    yield from _compare_languages(rows)


def _measure_length(
    joined: Joined, rows: Sequence[Mapping[str, Any]], claims: Mapping[Item, tuple[str, int | None]]
) -> Property:
    """The number of words, of the claims if claims are labelled."""
    of_claims = joined.items[0][3] is not None
    texts = [claims[item][0] for item in joined.items] if of_claims else [row.get("answer") or "" for row in rows]
    words = [len(text.split()) for text in texts]
    unit = next((unit for unit in _UNITS if max(words, default=0) >= 2 * unit), _UNITS[-1])
    what = f"{count_noun(unit, 'more word')}{' in a claim' if of_claims else ''}"
    return Property("length", f"{what} {_make(unit)}", [count / unit for count in words])


def _make(count: int) -> str:
    return "makes" if count == 1 else "make"


def _compare_systems(evaluation: Evaluation, joined: Joined) -> Iterator[Property | LeftOut]:
    systems = [item[1] for item in joined.items]
    present = set(systems)
    first = next((name for name in evaluation.systems if name in present), systems[0])
    yield from _compare_groups("system", systems, first, lambda name: f"Answers of {name} instead of {first} make")


def _compare_languages(rows: Sequence[Mapping[str, Any]]) -> Iterator[Property | LeftOut]:
    languages = [_read_language(row) for row in rows]
    known = Counter(language for language in languages if language is not None)
    if not known:
        yield LeftOut("language", "it is not clear for any answer")
        return
    ((first, _),) = known.most_common(1)
    if len(known) == 1:
        yield LeftOut("language", f"all answers whose language is clear are in {_name(first)}")
        return
    than = _name(first)
    yield from _compare_groups("language", languages, first, lambda name: f"{_name(name)} instead of {than} makes")


def _read_language(row: Mapping[str, Any]) -> str | None:
    """What the questions' column says, else the language of the answer, else that of the question."""
    column = json.loads(row.get("columns") or "{}").get(LANGUAGE_COLUMN)
    if isinstance(column, str) and column.strip():
        return column.strip()
    return find_language(row.get("answer") or "") or find_language(row.get("question") or "")


def _name(language: str) -> str:
    return NAMES.get(language.lower(), language)


def _compare_groups(
    kind: str, groups: Sequence[str | None], first: str, describe: Callable[[str], str]
) -> Iterator[Property | LeftOut]:
    """Each group against the first. Small groups, and items without one, are a group of their own that is not shown."""
    counts = Counter(groups)
    is_system = kind == "system"
    compared = [name for name in dict.fromkeys(groups) if name not in (None, first)]
    rest = [name is None for name in groups]
    for name in compared:
        assert name is not None
        if counts[name] < FEWEST or len(groups) - counts[name] < FEWEST:
            rest = [one or group == name for one, group in zip(rest, groups, strict=True)]
            yield LeftOut(f"{kind} {name}", _say_few(counts[name], len(groups)))
        else:
            numbers = [float(group == name) for group in groups]
            yield Property(f"{kind} {name}", describe(name), numbers, tells_models_apart=is_system)
    numbers = [float(one) for one in rest]
    yield Property(f"other {kind}", "", numbers, tells_models_apart=is_system, is_shown=False)


def compare_slices(joined: Joined, samples: Samples) -> Iterator[Property | LeftOut]:
    """Each slice against the other questions."""
    rows = [samples[item] for item in joined.items]
    for name, count in Counter(name for row in rows for name in row.get("slices") or ()).items():
        if FEWEST <= count <= len(rows) - FEWEST:
            numbers = [float(name in (row.get("slices") or ())) for row in rows]
            yield Property(f"slice {name}", f"Questions of {name} make", numbers)
        else:
            yield LeftOut(f"slice {name}", _say_few(count, len(rows)))


def _say_few(count: int, total: int) -> str:
    if count == total:
        return "all labelled items have it"
    fewer, what = (count, "with") if count < FEWEST else (total - count, "without")
    return f"only {count_noun(fewer, 'labelled item')} {what} it; {FEWEST} are needed"


def _read_claims(evaluation: Evaluation, joined: Joined) -> dict[Item, tuple[str, int | None]]:
    """The text of each claim of the labelled answers, and the place of the context that decided it, from 0."""
    wanted = {item[:3] for item in joined.items}
    claims: dict[Item, tuple[str, int | None]] = {}
    for block in evaluation.iterate_findings():
        rows = block.filter(metric=joined.metric).select(*_KEY, "claim", "text", "source")
        for dataset, system, query_id, claim, text, source in rows.iter_rows():
            if (dataset, system, query_id) in wanted:
                claims[dataset, system, query_id, claim] = text or "", source
    return claims


def _place_evidence(joined: Joined, claims: Mapping[Item, tuple[str, int | None]]) -> Iterator[Property]:
    """The place of the context that decided a claim, or its mean for the claims of an answer.

    Items without one get the mean of the others.
    """
    found: dict[Item, list[int]] = defaultdict(list)
    of_claims = joined.items[0][3] is not None
    for item, (_, source) in claims.items():
        if source is not None:
            found[item if of_claims else (*item[:3], None)].append(source)
    if found:
        places = {item: sum(sources) / len(sources) for item, sources in found.items()}
        mean = sum(places.values()) / len(places)
        numbers = [places.get(item, mean) for item in joined.items]
        yield Property("evidence", "Evidence that stands one context later makes", numbers)
