from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.metrics.context_entity_recall import normalize_entity
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

TAJ = "Taj Mahal|Yamuna|Agra|1631|Shah Jahan|Mumtaz Mahal"
NAMES = st.lists(st.sampled_from(["Agra", "Ulm", "Paris", "1879", "Seine"]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("context", "expected"),
    [("Taj Mahal|Agra|Shah Jahan|Mumtaz Mahal|India", 4 / 6), ("Taj Mahal|UNESCO|India", 1 / 6)],
)
def test_hand_worked(context: str, expected: float) -> None:
    """The example of RAGAS's documentation."""
    found = value_of(metric("context_entity_recall", RuleJudge()), sample(reference=TAJ, contexts=(context,)))
    assert found == pytest.approx(expected)


@given(NAMES, NAMES)
def test_it_is_recall_of_sets(reference: list[str], context: list[str]) -> None:
    one = sample(reference="|".join(reference), contexts=("|".join(context),))
    expected = len({*reference} & {*context}) / len({*reference})
    assert value_of(metric("context_entity_recall", RuleJudge()), one) == pytest.approx(expected)


def test_details_and_spelling() -> None:
    one = sample(reference="U.S.A.|São Paulo|Ulm|ulm", contexts=("usa", "SA\u0303O  PAULO|Bonn"))
    judge = RuleJudge()
    judge.entities = lambda texts: [tuple(t.replace("\n\n", "|").split("|")) for t in texts]  # type: ignore[method-assign]
    (found,) = measure(metric("context_entity_recall", judge), one)
    assert found.value == pytest.approx(2 / 3)
    assert found.details == {
        "found": ["U.S.A.", "São Paulo"],
        "missing": ["Ulm"],
        "entities_of_contexts": ["usa", "SA\u0303O  PAULO", "Bonn"],
    }


@pytest.mark.parametrize(
    ("name", "same"),
    [("The Hague", "the  hague"), ("Apollo-11", "Apollo 11"), ("ＩＢＭ", "ibm"), ("Straße", "STRASSE"), ("…", "")],
)
def test_normalisation(name: str, same: str) -> None:
    assert normalize_entity(name) == normalize_entity(same)


def test_amounts_and_signs_stay_apart() -> None:
    assert normalize_entity("C++") != normalize_entity("C")
    assert normalize_entity("$5") != normalize_entity("€5")
    assert normalize_entity("1.5") != normalize_entity("15")


def test_each_text_is_asked_about_only_once() -> None:
    judge = RuleJudge()
    samples = [sample(str(n), reference="Ulm", contexts=("Ulm", "Bonn")) for n in range(3)]
    built = metric("context_entity_recall", judge)
    assert calls(built.estimate(samples)) == ["entities 1  Ulm", "entities 1  Ulm\n\nBonn"]
    measure(built, *samples)
    assert judge.asked == [("entities", ("Ulm", "Ulm\n\nBonn"))]


def test_edges() -> None:
    found = measure(
        metric("context_entity_recall", RuleJudge()),
        sample(reference="", contexts=("Ulm",)),
        sample(reference="|", contexts=("Ulm",)),
        sample(reference="Ulm", contexts=()),
        sample(reference="broken", contexts=("Ulm",)),
        sample(reference="Ulm", contexts=("broken",)),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "the reference is empty"),
        (None, "unscorable", "the reference has no named entity"),
        (0.0, "scored", "the contexts have no named entity"),
        (None, "error", "no entities came"),
        (None, "error", "no entities came"),
    ]
