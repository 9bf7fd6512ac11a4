"""Finds which questions of each dataset belong together, and how much each counts, before anything is spent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum

from rageval_spec.data.datasets import Design, DesignSummary, EvaluatedQueries, Stratum
from rageval_spec.data.outcomes import Note
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.pipeline.execution.execution import list_evaluated
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.planning.question_shards import connect
from rageval_spec.pipeline.values import slice_membership
from rageval_spec.reading.production_mix import LARGEST, SLICE, MixRow, ProductionMix, read_mix
from rageval_spec.recorded.log_fields import TEXTS
from rageval_spec.spec.blocks.question_weights import CLUSTER, WEIGHT, WEIGHTS, find_key
from rageval_spec.spec.blocks.spec_node import QuestionWeightsNode, Spec
from rageval_spec.wording import agree, count_noun, format_percent

_MOST_NAMED = 3
_Kind = tuple[str, ...]
"""What a question has in each column of the mix."""


@dataclass(frozen=True)
class Designed:
    """The designs of the datasets that have one, and notes on their questions."""

    designs: Mapping[str, Design] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def summaries(self) -> dict[str, DesignSummary]:
        return {name: design.summary for name, design in self.designs.items()}


def check_question_columns(work: Work) -> None:
    """Check the clusters and weights of all questions, before any is asked.

    Raises `SpecError` if a column has no value, a weight is wrong, or the mix of production does not fit the questions.
    """
    opened = (work.materials.open_whole(name) for name in work.spec.datasets if name in work.spec.designs)
    find_designs(work.spec, [list_evaluated(work, one) for one in opened], is_limited=work.limit is not None)


def find_designs(spec: Spec, evaluated: Sequence[EvaluatedQueries], *, is_limited: bool = False) -> Designed:
    """The design of every dataset for which the spec has one. Nothing is read if it has none.

    `is_limited`: only the first questions are evaluated, so that kinds of questions may be missing. Raises `SpecError`
    as `check_question_columns` does.
    """
    designs: dict[str, Design] = {}
    notes: list[Note] = []
    faults: list[Diagnostic] = []
    for one in evaluated:
        node = spec.designs.get(one.collection.name)
        if node is not None:
            finder = _Finder(spec, node, one, is_limited=is_limited)
            designs[finder.dataset] = finder.find()
            notes += finder.notes
            faults += finder.faults
    if faults:
        raise SpecError(sorted(dict.fromkeys(faults), key=lambda fault: (fault.path, fault.position, fault.message)))
    return Designed(designs, tuple(notes))


def list_units(spec: Spec, evaluated: EvaluatedQueries) -> list[list[str]]:
    """The questions of a dataset, gathered where they must stay in one shard.

    That are those of one cluster, of one conversation, and of one group, whose answers metrics compare. Equal questions
    stay together too, because a system is asked them once.
    """
    design = spec.designs.get(evaluated.collection.name)
    of_cluster = [] if design is None or design.cluster is None else [design.cluster]
    columns = tuple(dict.fromkeys(("question", "group", *TEXTS["session"], *of_cluster)))
    return connect(
        {
            query_id: [
                (column, slice_membership.label(value))
                for column in columns
                for value in slice_membership.list_values(row.get(column))
            ]
            for query_id, row in slice_membership.read_rows(evaluated, columns)
        }
    )


class _Finder:
    def __init__(self, spec: Spec, node: QuestionWeightsNode, evaluated: EvaluatedQueries, *, is_limited: bool) -> None:
        self.spec = spec
        self.node = node
        self.evaluated = evaluated
        self.dataset = evaluated.collection.name
        self.is_limited = is_limited
        self.notes: list[Note] = []
        self.faults: list[Diagnostic] = []
        self.mix = None if node.weights is None else read_mix(spec.folder / node.weights)
        columns = [node.cluster, node.weight, *(() if self.mix is None else self.mix.columns)]
        named = [column for column in columns if column is not None and column != SLICE]
        self.rows = dict(slice_membership.read_rows(evaluated, tuple(dict.fromkeys(named))))

    def find(self) -> Design:
        clusters, without = self._find_clusters()
        weights: dict[str, float] | None = None
        strata: dict[str, int] = {}
        found: tuple[Stratum, ...] = ()
        if self.node.weight is not None:
            weights = self._read_weights(self.node.weight)
        elif self.mix is not None:
            weights, strata, found = self._match(self.mix)
        named = {*clusters.values()}
        summary = DesignSummary(
            questions=len(self.rows),
            cluster=self.node.cluster or ("repeat" if self.evaluated.collection.repeat > 1 else None),
            clusters=len(named) + without if named else None,
            without_cluster=without,
            weights=self.node.weights,
            weight=self.node.weight,
            strata=found,
            unlisted=0 if self.mix is None else sum(not weight for weight in (weights or {}).values()),
        )
        return Design(clusters, weights, strata, summary)

    def _find_clusters(self) -> tuple[dict[str, int], int]:
        """The cluster of each question with a value in the column, and the number of those without."""
        column, repeat = self.node.cluster, self.evaluated.collection.repeat
        if column is None and repeat == 1:
            return {}, 0
        values = {name: slice_membership.list_values(row.get(column or "")) for name, row in self.rows.items()}
        names: dict[str, list[Hashable]] = {q: [*map(slice_membership.label, of)] for q, of in values.items() if of}
        without = len(self.rows) - len(names)
        for query_id in self.rows if repeat > 1 else ():
            names.setdefault(query_id, []).append((query_id.rpartition("#")[0],))
        numbers = {query_id: number for number, unit in enumerate(connect(names)) for query_id in unit}
        clusters = {query_id: numbers[query_id] for query_id in names}
        if column is not None and without == len(self.rows):
            message = f"no question of '{self.dataset}' has a value in '{column}'"
            self._fault(CLUSTER, message, self._hint(CLUSTER, column))
        elif column is not None and without:
            each = "it counts as a cluster of its own" if without == 1 else "each counts as its own"
            questions = f"{without} of {count_noun(len(self.rows), 'question')} {agree(without, 'has')}"
            self._note("no_cluster", f"{questions} no value in '{column}'; {each}", without)
        without = len(self.rows) - len(clusters)
        if len({*clusters.values()}) + without == 1 < len(self.rows):
            message = f"all questions belong to one cluster ('{column or 'repeat'}')"
            message += ", so no number has an interval or a p-value below 1"
            self._note("one_cluster", message, len(self.rows), is_warning=True)
        return clusters, without

    def _read_weights(self, column: str) -> dict[str, float]:
        weights: dict[str, float] = {}
        wrong: list[str] = []
        for query_id, row in self.rows.items():
            values = slice_membership.list_values(row.get(column))
            number = slice_membership.find_number(values[0]) if len(values) == 1 else None
            if number is None or not 0 <= number < LARGEST:
                wrong.append(query_id)
            else:
                weights[query_id] = number
        if len(wrong) == len(self.rows):
            message = f"no question of '{self.dataset}' has a weight in '{column}'"
            self._fault(WEIGHT, message, self._hint(WEIGHT, column))
        elif wrong:
            message = f"{_name(wrong)} of '{self.dataset}' {agree(len(wrong), 'has')} no weight in '{column}'"
            self._fault(WEIGHT, message, "a weight is a number that is not negative; 0 leaves a question out")
        elif not any(weights.values()):
            self._fault(WEIGHT, f"every question of '{self.dataset}' has the weight 0 in '{column}'")
        return weights

    def _match(self, mix: ProductionMix) -> tuple[dict[str, float], dict[str, int], tuple[Stratum, ...]]:
        rows = mix.select(self.dataset)
        if not rows:
            self._fault(WEIGHTS, f"{mix.path.name} has no row of the dataset '{self.dataset}'")
            return {}, {}, ()
        kinds = self._list_kinds(mix)
        strata = self._sort(mix, rows, kinds)
        counts = [0] * len(rows)
        for stratum in strata.values():
            counts[stratum] += 1
        total = fsum(row.share for row in rows)
        if mix.total is not None:
            message = f"the shares in {mix.path.name} add up to {mix.total:.4g}; they are divided by that"
            self._note("shares_scaled", message)
        missing = [row for row, count in zip(rows, counts, strict=True) if row.share and not count]
        self._tell_missing(mix, missing, total, kinds)
        self._tell_unlisted(mix, len(self.rows) - len(strata))
        weights = dict.fromkeys(self.rows, 0.0)
        weights |= {query_id: rows[at].share / total / counts[at] for query_id, at in strata.items()}
        found = (Stratum(row.name, row.share / total, count) for row, count in zip(rows, counts, strict=True))
        return weights, strata, tuple(found)

    def _list_kinds(self, mix: ProductionMix) -> dict[str, list[_Kind]]:
        """What each question has in the columns of the mix; several kinds for a list of values or several slices."""
        slices: dict[str, list[str]] = {}
        if SLICE in mix.columns:
            for one in slice_membership.find_slices(self.spec.slices, [self.evaluated]).slices:
                for query_id in one.query_ids:
                    slices.setdefault(query_id, []).append(" ".join(one.name.split()))
        kinds: dict[str, list[_Kind]] = {}
        for query_id, row in self.rows.items():
            found: list[_Kind] = [()]
            for column in mix.columns:
                values = slices.get(query_id, [])
                if column != SLICE:
                    values = [slice_membership.label(one) for one in slice_membership.list_values(row.get(column))]
                options = [*dict.fromkeys(values)] or [""]
                found = [(*kind, value) for kind in found for value in options]
            kinds[query_id] = found
        return kinds

    def _sort(self, mix: ProductionMix, rows: Sequence[MixRow], kinds: Mapping[str, list[_Kind]]) -> dict[str, int]:
        """The number of the row that each question belongs to. A question of no row is absent."""
        places = {tuple(row.values.values()): number for number, row in enumerate(rows)}
        found = {query_id: [places[kind] for kind in of if kind in places] for query_id, of in kinds.items()}
        several = [query_id for query_id, of in found.items() if len(of) > 1]
        if several:
            verb = agree(len(several), "belongs")
            message = f"{_name(several)} of '{self.dataset}' {verb} to several rows of {mix.path.name}"
            self._fault(WEIGHTS, message, "write rows that divide the questions, so that each belongs to one row")
        return {query_id: of[0] for query_id, of in found.items() if of}

    def _tell_missing(
        self, mix: ProductionMix, missing: Sequence[MixRow], total: float, kinds: Mapping[str, list[_Kind]]
    ) -> None:
        """A fault for each row of which there is no question; a warning if only the first questions are evaluated."""
        if missing and self.is_limited:
            share = format_percent(fsum(row.share for row in missing) / total)
            message = f"no evaluated question is {_name_all([row.name for row in missing])}: {share} of production"
            self._note("missing_kinds", f"{message}; means are of the rest", len(missing), is_warning=True)
            return
        known = {mix.name_kind(kind) for of in kinds.values() for kind in of}
        for row in missing:
            share = format_percent(row.share / total)
            message = f"no question of '{self.dataset}' is {row.name}, which is {share} of production"
            column = next((name for name in mix.columns if row.values[name]), mix.columns[0])
            hint = suggest(row.name, sorted(known)) or "add questions of this kind, or remove the row"
            self.faults.append(mix.diagnose(row.line, column, message, hint))

    def _tell_unlisted(self, mix: ProductionMix, unlisted: int) -> None:
        if unlisted == len(self.rows):
            self._fault(WEIGHTS, f"{mix.path.name} lists no question of '{self.dataset}'")
        elif unlisted:
            questions = f"{unlisted} of {count_noun(len(self.rows), 'question')} {agree(unlisted, 'is')} of a kind"
            whose = agree(unlisted, "it does")
            message = f"{questions} that {mix.path.name} does not list, so {whose} not count in means"
            self._note("unlisted", message, unlisted, is_warning=True)

    def _fault(self, key: str, message: str, hint: str | None = None) -> None:
        path = find_key(self.spec.places, key, self.dataset)
        self.faults.append(self.spec.diagnose(path, message, "wrong-weights", hint))

    def _hint(self, key: str, column: str) -> str:
        """What to write in place of a column that no question has."""
        known = slice_membership.describe_columns(self.evaluated)
        others = [name for name in self.spec.datasets if name != self.dataset]
        if others and find_key(self.spec.places, key, self.dataset) == (key,):
            return f"name only the datasets that have it: {key}: {{{others[0]}: {column}}}{known}"
        return known.removeprefix("; ") or "add it to the file with the questions"

    def _note(self, code: str, message: str, count: int | None = None, *, is_warning: bool = False) -> None:
        self.notes.append(Note(code, message, self.dataset, None, count, "warning" if is_warning else "note"))


def _name(query_ids: Sequence[str]) -> str:
    noun = "the question" if len(query_ids) == 1 else f"{len(query_ids)} questions,"
    return f"{noun} {_name_all(query_ids)}" + ("," if len(query_ids) > 1 else "")


def _name_all(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
