"""Whether a judge favours the answers of its own model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rageval_spec.calibration.joining import Joined
from rageval_spec.calibration.properties import FEWEST, LeftOut, Property
from rageval_spec.history.generators import find_kinships
from rageval_spec.wording import count_noun, list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.model_names import Kinship

NAME = "own model"
_THAN = " than answers of other models that people rate the same"


def compare_own_model(evaluation: Evaluation, joined: Joined) -> Iterator[Property | LeftOut]:
    """Whether each labelled answer is of the judge's own model, or of one of the same family.

    Systems whose generator the spec does not name are neither own nor others: a second property, which is not shown,
    keeps them apart.
    """
    kinships = find_kinships(evaluation, joined.metric)
    systems = [item[1] for item in joined.items]
    own = [kinships.get(system) is not None for system in systems]
    others = [system in kinships and kinships[system] is None for system in systems]
    if not any(one in kinships for one in systems):
        yield LeftOut(NAME, "the spec names no `generator` of a labelled system, or the judge asks no model")
        return
    for which, whose in ((own, "the judge's own model"), (others, "other models")):
        if sum(which) < FEWEST:
            yield LeftOut(NAME, f"only {count_noun(sum(which), 'labelled item')} of {whose}; {FEWEST} are needed")
            return
    yield Property(NAME, f"Answers of {_say_own(systems, kinships)} make", [float(one) for one in own], _THAN)
    unknown = [system not in kinships for system in systems]
    yield Property("unknown generator", "", [float(one) for one in unknown], is_shown=False)


def find_own_systems(evaluation: Evaluation, metric: str) -> frozenset[str]:
    """The systems whose answers the judge's own model wrote; not those of other models of its family."""
    return frozenset(name for name, kinship in find_kinships(evaluation, metric).items() if kinship == "same")


def _say_own(systems: list[str], kinships: Mapping[str, Kinship | None]) -> str:
    own = [name for name in dict.fromkeys(systems) if kinships.get(name) is not None]
    model = "model" if all(kinships[name] == "same" for name in own) else "model or its family"
    return f"its own {model} ({list_names(own)})"
