"""How many labels belong to the answers of an evaluation, as far as that is known before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.data.labels import Label, digest_answer
from rageval_spec.pipeline.label_checks import choose_labels, list_labelled
from rageval_spec.pipeline.queries import queries_to_ask
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.pipeline.parts import Parts

_Answers = Mapping[tuple[str, str, str], str | None]
"""The digest of each answer, by dataset, system and query; None for one that is not known yet."""


@dataclass(frozen=True, slots=True)
class LabelMatches:
    """Where the labelled answers of one metric are.

    Attributes:
        metric: the metric's name in tables.
        source: the name of its labels.
        answers: how many answers have labels.
        matching: how many of them are the systems' answers now.
        changed: how many are earlier texts of answers.
        unknown: how many are to questions that the systems are still to be asked.
        absent: how many are of other questions or systems.
    """

    metric: str
    source: str
    answers: int
    matching: int
    changed: int
    unknown: int
    absent: int

    def __str__(self) -> str:
        """`faithfulness: 120 answers with labels of 'people': 110 as they are now, 10 changed`."""
        counts = (
            (self.matching, "as they are now"),
            (self.changed, "changed"),
            (self.unknown, "not known before the systems are asked"),
            (self.absent, "of other questions or systems"),
        )
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        return f"{self.metric}: {count_noun(self.answers, 'answer')} with labels of '{self.source}': {told}"


def render_matches(matches: Sequence[LabelMatches]) -> str:
    """The counts as lines of text."""
    return "".join(f"{one}\n" for one in matches)


def dump_matches(matches: Sequence[LabelMatches]) -> dict[str, Any]:
    """The counts in JSON's types; empty without labels."""
    return {"labels": [asdict(one) for one in matches]} if matches else {}


def match_labels(parts: Parts, limit: int | None = None) -> tuple[LabelMatches, ...]:
    """How many labels belong to the answers of an evaluation, for each metric that has labels. Asks nothing.

    Args:
        parts: the plugins of the spec.
        limit: only the first `limit` queries of each dataset are evaluated.
    """
    labelled = list_labelled(parts.metrics)
    if not labelled:
        return ()
    answers = dict(_list_answers(parts, limit))
    found = []
    for name, metric in labelled.items():
        source = str(metric.node.labels)
        labels = [one for one in choose_labels(parts.labels[source].read(), name, metric.node.use) if one.claim is None]
        found.append(_match(name, source, labels, answers))
    return tuple(found)


def _list_answers(parts: Parts, limit: int | None) -> Iterator[tuple[tuple[str, str, str], str | None]]:
    for dataset, plugin in parts.datasets.items():
        answering = {name: one for name, one in parts.systems.items() if one.answers_on(dataset)}
        asked = queries_to_ask(plugin.open(), limit) if answering else None
        if asked is None or asked.queries is None:
            continue
        for name, system in answering.items():
            yield from (((dataset, name, query_id), None) for query_id in asked.queries["query_id"])
            for query_id, text in system.find_answers(asked).select("query_id", "answer").iter_rows():
                yield (dataset, name, query_id), digest_answer(text or "")


def _match(name: str, source: str, labels: list[Label], answers: _Answers) -> LabelMatches:
    datasets, systems = ([*dict.fromkeys(key[part] for key in answers)] for part in (0, 1))
    items = dict.fromkeys(
        (one.dataset or _only(datasets), one.system or _only(systems), one.query_id, one.answer) for one in labels
    )
    counts = dict.fromkeys(("matching", "changed", "unknown", "absent"), 0)
    for *key, digest in items:
        known = answers.get((key[0], key[1], key[2]))
        if (key[0], key[1], key[2]) not in answers:
            counts["absent"] += 1
        elif known is None:
            counts["unknown"] += 1
        else:
            counts["matching" if digest in ("", known) else "changed"] += 1
    return LabelMatches(name, source, len(items), **counts)


def _only(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ""
