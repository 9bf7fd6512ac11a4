"""The field of a sweep: hand-worked cases, slow obvious references, and a small simulation of the winner's curse."""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.dataclass import replace
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import count_queries
from rageval_spec.sweep.field import Field, Placing

SETTINGS = StatisticsNode(resamples=4000, permutations=2000)


def make_field(*, higher_is_better: bool = True, bounds: Any = (0.0, 1.0), **more: Any) -> Field:
    metric: Any = SimpleNamespace(statistic="mean", bounds=bounds, higher_is_better=higher_is_better)
    return Field("set", "m", metric, SETTINGS, **more)


def number(**columns: list[float]) -> dict[str, dict[str, float]]:
    return {name: {f"q{at:03}": value for at, value in enumerate(values)} for name, values in columns.items()}


def standings(placings: dict[str, Placing]) -> dict[str, str]:
    return {name: one.standing for name, one in placings.items()}


def test_by_hand_the_clear_loser_is_worse_and_the_near_one_is_not_told_apart() -> None:
    """`good` beats `bad` on all 10 questions: p = 2/1024 exactly, times 2 by Holm. `near` loses one question."""
    found = make_field().place(number(bad=[0.2] * 10, near=[0.8] * 9 + [0.7], good=[0.8] * 10))
    assert standings(found) == {"bad": "worse", "near": "tied", "good": "best"}
    assert found["bad"].comparison is not None and found["near"].comparison is not None
    assert found["bad"].comparison.p_adjusted == pytest.approx(4 / 1024)
    assert found["near"].comparison.p_value == 1.0
    assert found["near"].aggregate is not None and found["near"].aggregate.mean == pytest.approx(0.79)
    assert found["bad"].needed is None and found["good"].needed is None
    # one difference of -0.1 in ten: mean -0.01 and sd sqrt(0.001); alpha is that of one of two comparisons
    assert found["near"].needed == count_queries(0.001**0.5, 0.01, 0.025)


def test_by_hand_a_failed_question_counts_as_the_worst_value_to_choose_the_best() -> None:
    """`flaky` has (3 x 0.9 + 2 x 0.2) / 5 = 0.62, so 0.7 is better. Where low is good, 0.9 is the worst."""
    scores = number(flaky=[0.9] * 3, steady=[0.7, 0.7, 0.9, 0.9, 0.3], low=[0.2] * 5)
    found = make_field().place(scores, failed={"flaky": 2})
    assert {name: one.failed for name, one in found.items()} == {"flaky": 2, "steady": 0, "low": 0}
    assert found["steady"].standing == "best" and found["flaky"].standing == "tied"
    assert found["flaky"].aggregate is not None and found["flaky"].aggregate.mean == pytest.approx(0.9)
    scores = number(flaky=[0.1] * 3, steady=[0.3] * 5, high=[0.9] * 5)  # (3 x 0.1 + 2 x 0.9) / 5 = 0.42
    assert make_field(higher_is_better=False).place(scores, failed={"flaky": 2})["steady"].standing == "best"


def test_a_candidate_without_values_is_not_beaten() -> None:
    field = make_field()
    scores = number(none=[], best=[0.9] * 12, bad=[0.1] * 12)
    placings = {name: replace(one, settings={"axis": name}) for name, one in field.place(scores).items()}
    assert field.sum_up("system", [12], placings, scores).outcome == "shortlist"
    del scores["none"], placings["none"]
    assert field.sum_up("system", [12], placings, scores).outcome == "best"


def test_a_winner_that_does_not_vary_on_the_shared_questions_is_corrected_all_the_same() -> None:
    scores = number(winner=[1.0] * 6 + [0.0, 1.0] * 10, dropped=[0.0, 1.0] * 3, other=[1.0] * 4 + [0.0] * 22)
    assert make_field().find_joint_confidence(scores) == pytest.approx(1 - 0.05 / 3)


def test_where_low_is_good_the_lowest_is_best() -> None:
    found = make_field(higher_is_better=False, bounds=(0.0, None)).place(
        number(fast=[1.0, 1.5] * 6, slow=[2.0, 2.5] * 6)
    )
    assert standings(found) == {"fast": "best", "slow": "worse"}


def test_no_value_is_not_zero() -> None:
    """A candidate without values is not compared; one that shares a single question cannot be told apart."""
    scores = number(none=[], one=[0.1], best=[0.9] * 12)
    found = make_field().place(scores)
    assert standings(found) == {"none": "unscored", "one": "tied", "best": "best"}
    assert (found["one"].comparison, found["one"].needed, found["none"].aggregate) == (None, None, None)
    assert standings(make_field().place(number(a=[], b=[]))) == {"a": "unscored", "b": "unscored"}


def test_equal_means_need_no_number_of_questions() -> None:
    found = make_field().place(number(a=[0.2, 0.8] * 10, b=[0.8, 0.2] * 10))
    assert standings(found) == {"a": "best", "b": "tied"}
    assert found["b"].needed is None


def test_the_joint_confidence_is_bonferronis_for_unrelated_values_and_the_usual_one_for_equal_ones() -> None:
    field = make_field()
    columns = np.eye(64)[:, :8] - 1 / 64  # nearly uncorrelated
    unrelated = field.find_joint_confidence(number(**{f"c{at}": list(columns[:, at]) for at in range(8)}))
    sidak = 0.95 ** (1 / 8)
    assert unrelated == pytest.approx(sidak, abs=0.0015)
    same = [0.1, 0.5, 0.9] * 10
    assert field.find_joint_confidence(number(a=same, b=same, c=same)) == pytest.approx(0.95, abs=0.006)
    assert field.find_joint_confidence(number(a=same)) == pytest.approx(0.95, abs=0.006)
    assert field.find_joint_confidence(number(a=[1.0] * 9, b=[0.0] * 9)) == 0.95  # nothing varies
    assert field.find_joint_confidence(number(a=[1.0, 0.0], b=[0.0, 1.0])) == 1 - 0.05 / 2  # too few to know


@pytest.mark.parametrize(("count", "published"), [(2, 2.21), (3, 2.35), (5, 2.51), (8, 2.65), (9, 2.69)])
def test_the_limit_is_that_of_dunnetts_table(count: int, published: float) -> None:
    """C. W. Dunnett, Biometrics 20, 1964, table II: two-sided, 5%, infinite degrees of freedom, correlations of 1/2."""
    signs = np.array([[1.0]])
    while len(signs) <= count + 1:
        signs = np.block([[signs, signs], [signs, -signs]])
    columns = {f"c{at}": list(signs[1] + signs[at + 2]) for at in range(count)}  # each pair has a correlation of 1/2
    field = replace(make_field(bounds=None), statistics=StatisticsNode(resamples=200_000))
    limit = NormalDist().inv_cdf((1 + field.find_joint_confidence(number(**columns))) / 2)
    assert limit == pytest.approx(published, abs=0.012)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.sampled_from([0.0, 0.6, 0.95]))
def test_the_joint_confidence_agrees_with_a_slow_bootstrap(seed: int, count: int, shared: float) -> None:
    """The slow reference draws the largest standardised mean by signs of the residuals, question by question."""
    random = np.random.default_rng(seed)
    common = random.standard_normal((200, 1))
    values = shared**0.5 * common + (1 - shared) ** 0.5 * random.standard_normal((200, count))
    scores = number(**{f"c{at}": list(values[:, at]) for at in range(count)})
    field = replace(make_field(bounds=None), statistics=StatisticsNode(resamples=40_000))
    found = field.find_joint_confidence(scores)
    apart = values - values.mean(axis=0)
    sizes = np.sqrt((apart**2).sum(axis=0))
    largest = [max(abs(random.choice([-1, 1], 200) @ apart) / sizes) for _ in range(10_000)]
    limit = np.quantile(largest, 0.95)
    alone = NormalDist().cdf(limit) - NormalDist().cdf(-limit)
    assert found == pytest.approx(alone, abs=0.006)
    assert 0.95 <= found <= 1 - 0.05 / count + 1e-6


def test_effects_by_hand() -> None:
    """Depth adds 0.1 with fp32 and 0.3 with int8, so 0.2 on average; int8 takes 0.1 at 50 and adds 0.1 at 100."""
    values = {("50", "fp32"): 0.5, ("100", "fp32"): 0.6, ("50", "int8"): 0.4, ("100", "int8"): 0.7}
    names = {key: f"{key[0]}-{key[1]}" for key in values}
    scores = number(**{names[key]: [value] * 12 for key, value in values.items()})
    chosen = {name: {"depth": key[0], "precision": key[1]} for key, name in names.items()}
    found = dict(make_field().find_effects(chosen, scores))
    assert (found["depth"].baseline, found["depth"].system, found["depth"].queries) == ("50", "100", 12)
    assert found["depth"].difference == pytest.approx(0.2)
    assert found["precision"].difference == pytest.approx(0.0)
    assert found["depth"].p_value < 0.01 and found["depth"].interval is not None
    assert found["depth"].p_adjusted == 2 * found["depth"].p_value  # Holm's correction is over the effects of all axes


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 3))
def test_effects_agree_with_pairwise_differences(seed: int, first: int, second: int) -> None:
    random = np.random.default_rng(seed)
    chosen = {f"{a}{b}": {"x": str(a), "y": str(b)} for a in range(first) for b in range(second)}
    scores = number(**{name: list(random.random(9)) for name in chosen})
    del scores["00"]["q003"]  # a question that one lacks does not count for any
    for axis, one in make_field().find_effects(chosen, scores):
        pairs = [
            scores[b][q] - scores[a][q]
            for a, b in combinations(chosen, 2)
            for q in scores["00"]
            if chosen[a][axis] == one.baseline and chosen[b][axis] == one.system
            and all(chosen[a][other] == chosen[b][other] for other in "xy" if other != axis)
        ]  # fmt: skip
        assert one.difference == pytest.approx(np.mean(pairs))
        assert one.queries == 8


def test_the_outcome_and_the_corrected_interval() -> None:
    random = np.random.default_rng(1)
    base = random.uniform(0.3, 0.7, 60)
    columns = {
        name: list(base + effect + random.uniform(-0.1, 0.1, 60))
        for name, effect in (("a", 0.0), ("b", 0.001), ("c", -0.15))
    }
    field, scores = make_field(), number(**columns)

    def sum_up(*names: str) -> Any:
        some = {name: scores[name] for name in names}
        placings = {
            name: Placing(**{**vars_of(one), "settings": {"axis": name}}) for name, one in field.place(some).items()
        }
        return field.sum_up("app", [60], placings, some), placings

    assert sum_up("a", "b")[0].outcome == "unresolvable"
    assert sum_up("a", "c")[0].outcome == "best"
    found, placings = sum_up("a", "b", "c")
    assert found.outcome == "shortlist"
    usual = placings[found.best].aggregate.interval
    assert found.corrected.interval.low < usual.low and usual.high < found.corrected.interval.high
    assert usual.confidence == 0.95 < found.corrected.interval.confidence


def vars_of(one: Placing) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Placing.__dataclass_fields__}


def test_clusters_widen_what_is_told() -> None:
    """Ten questions of each of six clusters with the same values count as six questions."""
    ids = [f"q{at:03}" for at in range(60)]
    design = Design({one: at // 10 for at, one in enumerate(ids)}, summary=DesignSummary(60, cluster="chapter"))
    scores = number(a=[0.5] * 60, b=[value for value in (0.6, 0.4, 0.6, 0.5, 0.4, 0.6) for _ in range(10)])
    plain, clustered = make_field().place(scores), make_field(design=design).place(scores)
    needed = plain["a"].needed, clustered["a"].needed
    assert needed[0] is not None and needed[1] is not None and needed[0] * 5 < needed[1]
    assert clustered["b"].aggregate is not None and plain["b"].aggregate is not None
    assert clustered["b"].aggregate.interval.low < plain["b"].aggregate.interval.low  # type: ignore[union-attr]


def test_the_winners_interval_holds_where_the_usual_one_does_not() -> None:
    """Twenty equally good candidates, yes and no: the full simulation is `benches/sweep_winner.py`."""
    random, field, draws = np.random.default_rng(7), make_field(), 60
    usual = corrected = 0
    for _ in range(draws):
        chances = random.uniform(0.2, 0.8, 60)
        scores = number(**{f"c{at}": list((random.random(60) < chances).astype(float)) for at in range(20)})
        means = field.average(scores)
        best = max(means, key=lambda name: means[name].mean or 0.0)
        wide = field.average({best: scores[best]}, field.find_joint_confidence(scores))[best].interval
        narrow = means[best].interval
        assert wide is not None and narrow is not None
        usual += narrow.low <= 0.5 <= narrow.high
        corrected += wide.low <= 0.5 <= wide.high
    assert corrected >= 0.93 * draws > usual
