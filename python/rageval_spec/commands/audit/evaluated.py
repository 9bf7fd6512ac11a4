"""Finds the results of earlier evaluations of a spec, whose values tell more about its questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.audit.size import Power
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.power import measure_power
from rageval_spec.commands.results import Opened, is_results, open_results
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.history.finding import PREVIOUS, Places, find_record
from rageval_spec.plugin.report import RESULTS_FOLDER

if TYPE_CHECKING:
    from rageval_spec.spec.nodes import Spec


@dataclass(frozen=True)
class Found:
    """Results of earlier evaluations.

    Attributes:
        opened: the results, by the names that the user gave them.
        why_none: if there are none, why, and what to do.
    """

    opened: Sequence[Opened]
    why_none: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the results."""
        return [one.name for one in self.opened]


def find_results(spec: Spec, named: Sequence[str]) -> Found:
    """The results that are named; else the last results if they are of this spec, else its newest record.

    Raises:
        UsageError: there are no results of a name.
        DataError: results cannot be read.
    """
    if named:
        return Found([open_results(name) for name in named])
    if is_results(RESULTS_FOLDER):
        opened = open_results()
        if opened.evaluation.name == spec.name:
            return Found([opened])
    try:
        record = find_record(PREVIOUS, Places.of(spec))
    except (DataError, UsageError, RagevalError):
        return Found([], f"'{spec.name}' has not been evaluated; evaluate it with: {PROGRAM} run {spec.path}")
    return Found([Opened(f"record {record.id[:8]}" if record.id else "the newest record", record.evaluation)])


def list_powers(spec: Spec, found: Found, dataset: str) -> list[Power] | None:
    """What the questions of a dataset can show, from the first results; None without results."""
    if not found.opened:
        return None
    rows = measure_power(spec, found.opened[0])
    return [
        Power(
            row.system,
            row.metric,
            row.baseline,
            row.queries,
            row.sd,
            row.smallest_drop,
            row.max_drop,
            row.needed,
        )
        for row in rows
        if row.dataset == dataset
    ]
