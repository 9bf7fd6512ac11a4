"""Aggregates and comparisons corrected by labels: by hand, against a plain recomputation, and the awkward cases.

Rows with labels: which count, in which order, and when two systems are compared question by question.

Differences of systems whose labels are of different questions: by a plain search, and their coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.data.outcomes import FEWEST_LABELS
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import aggregate, compare_systems
from rageval_spec.statistics.raters.corrected_means import Side, correct_difference, correct_mean, respect_bounds
from rageval_spec.statistics.raters.label_correction import (
    LabelledPair,
    LabelledRows,
    Rule,
    correct_aggregates,
    correct_comparisons,
    place_rows,
    take_rows,
)

Number = float | None
STATISTICS = StatisticsNode(resamples=200, permutations=200)
RULES = {"f": Rule("people", (0.0, 1.0))}


class Mean:
    """What is aggregated: a mean, and high values are good."""

    statistic = "mean"
    higher_is_better = True


MEANS = {"f": Mean(), "g": Mean()}


def table(metric: str = "f", **systems: tuple[Sequence[Number], Sequence[Number]]) -> pl.DataFrame:
    """The values of each system, and the labels of its first answers."""
    rows = [
        {
            "dataset": "d", "system": system, "metric": metric, "query_id": f"q{place:03}", "value": value,
            "status": "unscorable" if value is None else "scored",
            "label": labels[place] if place < len(labels) else None,
            "label_weight": None if place >= len(labels) or labels[place] is None else 1.0,
        }
        for system, (values, labels) in systems.items()
        for place, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(
        rows, schema_overrides={"label": pl.Float64, "label_weight": pl.Float64}, infer_schema_length=None
    )


def correct(values: pl.DataFrame, rule: Rule = RULES["f"]) -> Aggregate:
    aggregates = aggregate(values, MEANS, STATISTICS)
    return correct_aggregates(aggregates, values, {"f": rule})[0]


def compare(values: pl.DataFrame, rule: Rule = RULES["f"]) -> tuple[tuple[Comparison, ...], list[str]]:
    found = correct_comparisons(compare_systems(values, "a", MEANS, STATISTICS), values, {"f": rule})
    return found.comparisons, [note.message for note in found.notes]


def draw(seed: int, count: int = 60) -> tuple[list[float], list[float]]:
    """A judge's values, and what people say of the first 30 answers."""
    random = np.random.default_rng(seed)
    truth = (random.random(count) < 0.6).astype(float)
    judged = np.clip(0.7 * truth + 0.2 + 0.2 * random.standard_normal(count), 0, 1)
    return judged.tolist(), truth[:30].tolist()


def test_a_number_that_another_library_gave() -> None:
    """ppi_py 0.2.3, `ppi_mean_pointestimate` with the weight 0.5284090909090907, gives 0.70284091."""
    place, others = np.arange(20), np.arange(60)
    labels = (place % 3 != 0).astype(float)
    judged = np.where(place % 4 == 1, 1 - labels, labels) * 0.6 + 0.2 * (place % 5) / 4
    values = [*judged, *(0.15 + 0.7 * ((others * 7) % 60) / 59)]
    found = correct(table(a=(values, labels.tolist())))
    assert found.mean == pytest.approx(0.70284091, abs=5e-9)


def test_the_mean_is_corrected_and_what_it_is_made_of_is_kept() -> None:
    judged, labels = draw(1)
    found = correct(table(a=(judged, labels)))
    expected = correct_mean(np.array(judged[:30]), np.array(labels), np.array(judged[30:]))
    expected = respect_bounds(expected, np.array(labels), (0.0, 1.0), 0.95)
    assert expected.interval is not None and expected.labelled_interval is not None
    assert (found.mean, found.interval) == (expected.value, expected.interval)
    assert found.correction is not None
    assert found.correction.judged == pytest.approx(np.mean(judged), rel=1e-12)
    assert found.correction.judged_interval is not None and found.correction.judged_interval.method == "bootstrap-bca-t"
    assert found.correction.labelled == pytest.approx(np.mean(labels), rel=1e-12)
    assert found.correction.labelled_interval == expected.labelled_interval
    assert (found.correction.labels, found.correction.worth) == (30, expected.worth)
    assert (found.scored, found.total, found.correction.reason) == (60, 60, None)


def test_other_metrics_stay_as_they_are() -> None:
    values = pl.concat([table(a=draw(1)), table("g", a=draw(2))])
    aggregates = aggregate(values, MEANS, STATISTICS)
    assert correct_aggregates(aggregates, values, RULES)[1] is aggregates[1]
    assert correct_aggregates(aggregates, values, {}) == aggregates


@pytest.mark.parametrize(
    ("count", "reason"),
    [(0, "no answer has labels"), (1, "only 1 answer has labels"), (9, "only 9 answers have labels")],
)
def test_too_few_labels_give_no_mean_and_say_why(count: int, reason: str) -> None:
    judged, labels = draw(1)
    found = correct(table(a=(judged, labels[:count])))
    assert (found.mean, found.interval) == (None, None)
    assert found.correction is not None
    assert found.correction.reason == f"{reason}, where at least {FEWEST_LABELS} are needed"
    assert found.correction.judged == pytest.approx(np.mean(judged), rel=1e-12)
    assert found.correction.labels == count and found.correction.labelled_interval is None
    assert correct(table(a=(judged, labels[:FEWEST_LABELS]))).mean is not None


def test_a_problem_with_the_labels_themselves_is_the_reason() -> None:
    found = correct(table(a=draw(1)), Rule("people", (0, 1), problem="labels.csv: no such file"))
    assert found.mean is None
    assert found.correction is not None and found.correction.reason == "labels.csv: no such file"


def test_labels_of_answers_without_a_value_do_not_count() -> None:
    judged, labels = draw(1)
    without: list[Number] = [None, None, *judged[2:]]
    found = correct(table(a=(without, labels)))
    assert found.mean == correct(table(a=(judged[2:], labels[2:]))).mean
    assert (found.scored, found.total) == (58, 60)
    assert found.correction is not None and found.correction.labels == 28


def test_without_any_value_there_is_nothing_to_correct() -> None:
    found = correct(table(a=([None] * 20, [1.0] * 20)))
    assert (found.mean, found.correction) == (None, None)


@pytest.mark.parametrize(("label", "low", "high"), [(1.0, 0.877, 1.0), (0.0, 0.0, 0.123), (0.5, 0.438, 0.562)])
def test_labels_that_are_all_the_same_leave_room_for_others(label: float, low: float, high: float) -> None:
    """28 labels are all alike with a probability of 0.877**28 = 0.025, if 12.3% of the others differ."""
    judged, _ = draw(3)
    found = correct(table(a=(judged, [label] * 28)))
    assert found.mean == label
    assert found.interval is not None and found.interval.method == "all-equal"
    share = 1 - 0.025 ** (1 / 28)
    assert share == pytest.approx(stats.binomtest(0, 28).proportion_ci(0.95, "exact").high)
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.002)


def test_a_mean_is_never_outside_what_the_metric_can_be() -> None:
    judged = [0.8, 0.9] * 10 + [1.0] * 60
    labels = [0.9, 1.0] * 10
    found = correct(table(a=(judged, labels)))
    assert found.correction is not None and found.correction.is_clipped
    assert found.mean == 1.0
    assert found.interval is not None and found.interval.low <= found.interval.high == 1.0


def test_the_scale_of_a_metric_is_that_of_its_bounds() -> None:
    judged, labels = ([4 * number + 1 for number in numbers] for numbers in draw(1))
    one, five = correct(table(a=draw(1))), correct(table(a=(judged, labels)), Rule("people", (1.0, 5.0)))
    assert one.mean is not None
    assert five.mean == pytest.approx(4 * one.mean + 1, rel=1e-12)


def test_a_difference_is_corrected_question_by_question() -> None:
    (a, of_a), (b, of_b) = draw(1), draw(2)
    (found,), notes = compare(table(a=(a, of_a), b=(b, of_b)))
    differences, labels = np.array(b) - np.array(a), np.array(of_b) - np.array(of_a)
    expected = correct_mean(differences[:30], labels, differences[30:])
    assert (found.difference, found.interval) == (expected.value, expected.interval)
    assert expected.error is not None
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(expected.value) / expected.error, 29), rel=1e-3)
    assert found.p_adjusted == found.p_value
    assert found.baseline_mean == correct(table(a=(a, of_a))).mean
    assert found.correction is not None and found.correction.labels == 30
    assert found.correction.judged == pytest.approx(differences.mean(), rel=1e-12)
    assert (found.queries, notes) == (60, [])


def test_few_questions_with_labels_for_both_give_the_difference_of_the_two_means() -> None:
    (a, of_a), (b, of_b) = draw(1), draw(2)
    most: list[Number] = [None] * 7 + [*of_b[7:]]
    (found,), _ = compare(table(a=(a, of_a), b=(b, most)))
    assert found.correction is not None
    assert (found.correction.labels, found.correction.is_paired) == (23, True)
    half: list[Number] = [None] * 15 + [*of_b[15:]]
    (found,), _ = compare(table(a=(a, of_a), b=(b, half)))
    assert found.correction is not None
    assert (found.correction.labels, found.correction.is_paired) == (45, False)
    assert found.correction.labelled == pytest.approx(np.mean(of_b[15:]) - np.mean(of_a))
    other: list[Number] = [None] * 30 + [*of_b]
    (found,), _ = compare(table(a=(a, of_a), b=(b, other)))
    assert found.correction is not None and found.correction.labels == 60
    alike: list[Number] = [None] * 30 + [1.0] * 30
    nothing, notes = compare(table(a=(a, of_a), b=(b, alike)))
    assert nothing == () and "all labels of one of the two are the same; label the other system's" in notes[0]


def test_too_few_labels_of_one_system_give_no_comparison() -> None:
    (a, of_a), (b, of_b) = draw(1), draw(2)
    few: list[Number] = [None] * 24 + [*of_b[24:]]
    found_few, notes = compare(table(a=(a, of_a), b=(b, few)))
    assert found_few == ()
    assert notes == ["f was not compared with a: only 6 questions have labels for both, where at least 10 are needed"]


def test_holms_correction_is_over_the_corrected_p_values() -> None:
    values = pl.concat([table(a=draw(1), b=draw(2), c=draw(7)), table("g", a=draw(1), b=draw(2), c=draw(7))])
    found, _ = compare(values)
    ordered = sorted(one.p_value for one in found)
    holm = np.maximum.accumulate([min(1, p * (len(ordered) - rank)) for rank, p in enumerate(ordered)])
    assert sorted(one.p_adjusted for one in found) == pytest.approx(holm, rel=1e-12)
    assert len(found) == 4


def test_systems_that_people_find_alike_do_not_differ_although_the_judge_prefers_one() -> None:
    judged, labels = draw(1)
    (found,), _ = compare(table(a=(judged, labels), b=([value + 0.2 for value in judged], labels)))
    assert found.correction is not None and found.correction.judged == pytest.approx(0.2)
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.interval is not None and found.interval.method == "all-equal"
    assert found.interval.low == -found.interval.high < 0


def test_differences_that_are_all_alike_have_the_p_value_of_their_interval() -> None:
    judged, _ = draw(1)
    (found,), _ = compare(table(a=(judged, [0.0] * 20), b=(judged, [1.0] * 20)))
    assert found.difference == 1.0
    assert found.p_value == pytest.approx(2 * 0.5**20)  # half of the labels could be -1, and none was drawn
    for confidence, inside in ((1 - 0.5**19 * 1.01, False), (1 - 0.5**19 * 0.99, True)):
        values = table(a=(judged, [0.0] * 20), b=(judged, [1.0] * 20))
        again = correct_comparisons(compare_systems(values, "a", MEANS, STATISTICS), values, RULES, confidence)
        interval = again.comparisons[0].interval
        assert interval is not None and (interval.low < 0) == inside


def test_an_earlier_evaluation_is_compared_by_its_own_labels() -> None:
    now, before = table(a=draw(1)), table(a=draw(2))
    compared = compare_systems(now, "main", MEANS, STATISTICS, earlier=before)
    (found,) = correct_comparisons(compared, now, RULES, earlier=before).comparisons
    (between,), _ = compare(table(a=draw(2), b=draw(1)))
    assert (found.difference, found.p_value) == (between.difference, between.p_value)


def yes_no(seed: int, sensitivity: float = 0.9) -> tuple[list[float], list[float]]:
    random = np.random.default_rng(seed)
    truth = random.random(300) < 0.6
    judged = random.random(300) < np.where(truth, sensitivity, 0.2)
    return judged.astype(float).tolist(), truth[:100].astype(float).tolist()


def test_rogan_and_gladen_for_judges_that_say_yes_or_no() -> None:
    rule = Rule("people", (0.0, 1.0), "rogan_gladen")
    found = correct(table(a=yes_no(1)), rule)
    assert found.mean is not None and found.interval is not None and found.correction is not None
    assert found.interval.method == "rogan-gladen"
    assert found.interval.low < 0.6 < found.interval.high
    assert found.correction.method == "rogan_gladen"
    assert found.correction.worth is not None and found.correction.worth > 0
    graded = correct(table(a=draw(1)), rule)
    assert graded.mean is None and graded.correction is not None
    assert graded.correction.reason is not None and "write 'correction: ppi'" in graded.correction.reason


def test_rogan_and_gladen_compare_two_systems_with_what_they_share() -> None:
    rule = Rule("people", (0.0, 1.0), "rogan_gladen")
    (found,), _ = compare(table(a=yes_no(1), b=yes_no(2)), rule)
    one, other = (correct(table(a=yes_no(seed)), rule).mean for seed in (1, 2))
    assert one is not None and other is not None
    assert found.difference == pytest.approx(other - one, rel=1e-12)
    assert found.interval is not None
    error = (found.interval.high - found.interval.low) / 2 / 1.959963984540054
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(found.difference) / error), rel=1e-9)
    (same,), _ = compare(table(a=yes_no(1), b=yes_no(1)), rule)
    assert same.difference == 0 and same.p_value == pytest.approx(1)
    assert same.interval is not None and same.interval.high - same.interval.low < math.inf


def test_the_corrected_difference_covers_what_people_would_say() -> None:
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        truth = random.random((2, 300)) < np.array([[0.6], [0.7]])
        likes = np.array([[0.0], [0.15]])  # the judge likes the second system better than people do
        judged = 0.5 * truth + likes + 0.3 * random.random((2, 300))
        labels = truth[:, :80].astype(float)
        values = table(a=(judged[0].tolist(), labels[0].tolist()), b=(judged[1].tolist(), labels[1].tolist()))
        (found,), _ = compare(values)
        assert found.interval is not None
        covered += found.interval.low <= 0.1 <= found.interval.high
    assert 180 <= covered <= 199


def design(clusters: Sequence[int] | None = None, weights: Sequence[float] | None = None) -> dict[str, Design]:
    """Clusters and weights of the questions q000, q001, ..."""
    named = {f"q{place:03}": int(of) for place, of in enumerate(clusters or ())}
    counts = None if weights is None else {f"q{place:03}": of for place, of in enumerate(weights)}
    summary = DesignSummary(60, cluster=None if clusters is None else "source")
    return {"d": Design(named, counts, summary=summary)}


def correct_designed(values: pl.DataFrame, designs: dict[str, Design], rule: Rule = RULES["f"]) -> Aggregate:
    aggregates = aggregate(values, MEANS, STATISTICS, designs=designs)
    return correct_aggregates(aggregates, values, {"f": rule}, designs=designs)[0]


def width(one: Aggregate | Comparison) -> float:
    assert one.interval is not None
    return one.interval.high - one.interval.low


@pytest.mark.parametrize("method", ["ppi", "rogan_gladen"])
def test_clusters_widen_a_corrected_interval_and_keep_the_mean(method: str) -> None:
    truth = np.repeat(np.random.default_rng(3).random(20) < 0.6, 3).astype(float)
    judged = np.where(np.arange(60) % 9 == 4, 1 - truth, truth)
    rule = Rule("people", (0.0, 1.0), "ppi" if method == "ppi" else "rogan_gladen")
    values = table(a=(judged.tolist(), truth[:30].tolist()))
    alone, together = correct(values, rule), correct_designed(values, design([at // 3 for at in range(60)]), rule)
    assert together.mean == pytest.approx(alone.mean)
    assert width(together) > 1.2 * width(alone)
    assert together.correction is not None and alone.correction is not None
    assert together.correction.labelled == pytest.approx(alone.correction.labelled)


def test_with_labels_of_every_answer_the_corrected_mean_is_their_weighted_mean() -> None:
    api = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(5)
    judged, labels, weights = random.random(60), random.random(60), random.gamma(2, size=60)
    clusters = [at // 4 for at in range(60)]
    found = correct_designed(table(a=(judged.tolist(), labels.tolist())), design(clusters, weights.tolist()))
    wanted = api.WLS(labels, np.ones(60), weights).fit(cov_type="cluster", cov_kwds={"groups": np.array(clusters)})
    assert found.mean == pytest.approx(wanted.params[0])
    assert found.correction is not None
    assert found.correction.judged == pytest.approx(np.average(judged, weights=weights))
    # Its own degrees of freedom are of the effective number of clusters, so the interval is at least that of t(14).
    assert width(found) >= 2 * stats.t.ppf(0.975, 14) * wanted.bse[0] * (1 - 1e-6)
    assert width(found) < 2.2 * stats.t.ppf(0.975, 14) * wanted.bse[0]


@pytest.mark.parametrize("method", ["ppi", "rogan_gladen"])
def test_a_judge_that_never_errs_gives_the_weighted_mean_of_what_people_would_say(method: str) -> None:
    truth = (np.arange(60) % 3 > 0).astype(float)
    weights = [1.0 + (at % 3) for at in range(60)]
    rule = Rule("people", (0.0, 1.0), "ppi" if method == "ppi" else "rogan_gladen")
    found = correct_designed(table(a=(truth.tolist(), truth[:40].tolist())), design(weights=weights), rule)
    assert found.mean == pytest.approx(np.average(truth, weights=weights), abs=0.02)
    assert found.design is not None and found.design.plain == pytest.approx(40 / 60, abs=0.02)


def test_labels_of_one_cluster_give_no_corrected_number() -> None:
    judged, labels = draw(1)
    found = correct_designed(table(a=(judged, labels)), design([0] * 30 + [1] * 30))
    assert (found.mean, found.interval) == (None, None)
    assert found.correction is not None
    assert found.correction.reason == "all labels belong to questions of one cluster"


def test_a_corrected_comparison_flips_no_single_question_of_a_cluster() -> None:
    better = np.repeat(np.random.default_rng(9).random(20) < 0.8, 3).astype(float)
    worse = np.repeat(np.random.default_rng(2).random(20) < 0.5, 3).astype(float)
    values = table(a=(worse.tolist(), worse[:30].tolist()), b=(better.tolist(), better[:30].tolist()))
    designs = design([at // 3 for at in range(60)])
    [alone] = correct_comparisons(compare_systems(values, "a", MEANS, STATISTICS), values, RULES).comparisons
    [together] = correct_comparisons(
        compare_systems(values, "a", MEANS, STATISTICS, designs=designs), values, RULES, designs=designs
    ).comparisons
    assert together.difference == pytest.approx(alone.difference)
    assert together.p_value > alone.p_value
    assert width(together) > width(alone)


def test_weights_of_questions_count_for_the_judge_and_for_the_labels() -> None:
    """A plain reference: the weight of the judge is searched for, with the parts that each question contributes."""
    judged, labels = draw(1)
    labels = [0.9 * label for label in labels]  # grades, whose intervals are symmetric
    found = correct_designed(table(a=(judged, labels)), design(weights=[1.0 + at % 4 for at in range(60)]))
    masses = np.array([1.0 + place % 4 for place in range(60)])
    masses /= masses.sum()
    counts = masses[:30] / masses[:30].sum()
    everything, truth = np.array(judged), np.array(labels)

    def parts(weight: float) -> NDArray[np.float64]:
        of_judge = masses * (everything - masses @ everything)
        of_judge[:30] -= counts * (everything[:30] - counts @ everything[:30])
        of_labels = np.concatenate([counts * (truth - counts @ truth), np.zeros(30)])
        total: NDArray[np.float64] = of_labels + weight * of_judge
        return total

    best = float(optimize.minimize_scalar(lambda weight: float((parts(weight) ** 2).sum())).x)
    value = counts @ truth + best * (masses @ everything - counts @ everything[:30])
    error = math.sqrt(float((parts(best) ** 2).sum()) * 30 / 29)
    degrees = round(1 / float((counts**2).sum())) - 1
    assert found.mean == pytest.approx(value, rel=1e-6)
    assert found.interval is not None
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, degrees) * error, rel=1e-4)
    assert found.correction is not None and found.correction.judged == pytest.approx(masses @ everything)
    assert found.design is not None and found.design.plain == correct(table(a=(judged, labels))).mean


def test_questions_that_belong_together_are_not_independent() -> None:
    judged, labels = draw(1, 20)
    thrice = table(a=(np.repeat(judged, 3).tolist(), np.repeat(labels[:10], 3).tolist()))
    together, apart, once = (
        correct_designed(thrice, design([at // 3 for at in range(60)])),
        correct(thrice),
        correct(table(a=(judged, labels[:10]))),
    )
    widths = [one.interval.high - one.interval.low for one in (together, apart, once) if one.interval is not None]
    assert together.mean == pytest.approx(once.mean, rel=1e-9)
    assert widths[0] == pytest.approx(widths[2], rel=1e-9)
    assert widths[1] < 0.6 * widths[0]


def test_equal_labels_of_unequal_weight_leave_more_room() -> None:
    judged, _ = draw(3)
    values = table(a=(judged, [1.0] * 28))
    weighted = correct_designed(values, design(weights=[1.0 + 9 * (at % 4 == 0) for at in range(60)]))
    assert weighted.mean == 1.0
    assert width(weighted) > 1.5 * width(correct(values))


def frame(system: str, labels: list[float | None], values: list[float | None]) -> pl.DataFrame:
    count = len(values)
    return pl.DataFrame(
        {
            "dataset": ["d"] * count, "system": [system] * count, "metric": ["f"] * count,
            "query_id": [f"q{at}" for at in range(count)],
            "status": ["error" if value is None else "scored" for value in values],
            "value": values, "label": labels, "label_weight": [None if one is None else 1.0 for one in labels],
        },
        schema_overrides={"label": pl.Float64, "label_weight": pl.Float64, "value": pl.Float64},
    )  # fmt: skip


def test_rows_without_labels_are_the_others() -> None:
    rows = LabelledRows.of(frame("a", [1.0, None, 0.0], [0.7, 0.8, 0.9]))
    assert (rows.judged.tolist(), rows.labels.tolist(), rows.others.tolist()) == ([0.7, 0.9], [1.0, 0.0], [0.8])
    assert (rows.count, rows.parts, rows.effective) == (2, 2, 2)


def test_questions_that_do_not_count_are_left_out_and_clusters_follow_the_order() -> None:
    values = frame("a", [1.0, None, 0.0, 1.0], [0.7, 0.8, 0.9, 0.6])
    clusters = {"q0": 0, "q1": 1, "q2": 1, "q3": 0}
    weights = {"q0": 1.0, "q1": 2.0, "q2": 1.0, "q3": 0.0}
    design = Design(clusters, weights, summary=DesignSummary(4, "source", weight="traffic"))
    rows = LabelledRows.of(values, place_rows(design, values, values))
    assert rows.labels.tolist() == [1.0, 0.0] and rows.others.tolist() == [0.8]
    assert rows.clusters is not None and rows.clusters[1] == rows.clusters[2] != rows.clusters[0]
    assert rows.shares is not None and rows.shares.tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_pairs_are_of_questions_that_are_scored_in_both() -> None:
    own = frame("a", [1.0, 1.0, None, 0.0], [0.7, None, 0.9, 0.6])
    base = frame("b", [0.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5])
    pair = LabelledPair(take_rows(own, ["f"]), take_rows(base, ["f"]), None)
    assert pair.differences.labels.tolist() == [1.0, -1.0]
    assert [side.count for side in pair.sides] == [2, 3]
    assert pair.is_apart  # only 2 of 3
    assert not LabelledPair(take_rows(own, ["f"]), take_rows(own, ["f"]), None).is_apart


Floats = NDArray[np.float64]


def draw_unpaired(seed: int, count: int, own: slice, other: slice, *, likes: float = 0.1) -> tuple[Side, Side]:
    """Two systems of which people would like 0.7 and 0.6 of the answers; the judge likes the first better."""
    random = np.random.default_rng(seed)
    hardness = random.random(count)
    sides = []
    for share, taken, more in ((0.7, own, likes), (0.6, other, 0.0)):
        truth = (np.where(random.random(count) < 0.5, hardness, random.random(count)) < share).astype(float)
        judged = np.clip(0.6 * truth + 0.2 + more + 0.2 * random.standard_normal(count), 0, 1)
        labels = np.full(count, math.nan)
        labels[taken] = truth[taken]
        sides.append(Side(judged, labels, np.ones(count)))
    return sides[0], sides[1]


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_difference_with_the_least_variance(weighted: bool) -> None:
    """A plain reference: the two weights are searched for, question by question."""
    own, other = draw_unpaired(1, 90, slice(0, 40), slice(30, 75))
    shares = np.arange(1.0, 91) / np.arange(1.0, 91).sum() if weighted else np.full(90, 1 / 90)
    found = correct_difference(own, other, shares=shares if weighted else None)

    def measure(side: Side, weight: float) -> tuple[float, Floats]:
        counts = np.where(np.isnan(side.labels), 0, shares)
        counts /= counts.sum()
        value, parts = 0.0, np.zeros(90)
        for at in range(90):
            label = 0.0 if math.isnan(side.labels[at]) else side.labels[at]
            value += counts[at] * (label - weight * side.judged[at]) + weight * shares[at] * side.judged[at]
        labelled = sum(count * label for count, label in zip(counts, np.nan_to_num(side.labels), strict=True))
        for at in range(90):
            parts[at] += counts[at] * (np.nan_to_num(side.labels)[at] - labelled)
            parts[at] += weight * shares[at] * (side.judged[at] - shares @ side.judged)
            parts[at] -= weight * counts[at] * (side.judged[at] - counts @ side.judged)
        return value, parts

    def spread(weights: Floats) -> float:
        return float(((measure(own, weights[0])[1] - measure(other, weights[1])[1]) ** 2).sum())

    best = optimize.minimize(spread, np.zeros(2), tol=1e-12).x
    value = measure(own, best[0])[0] - measure(other, best[1])[0]
    assert found.value == pytest.approx(value, abs=1e-5)
    effective = (
        40
        if not weighted
        else min(
            round(float(shares[taken].sum() ** 2 / (shares[taken] ** 2).sum()))
            for taken in (slice(0, 40), slice(30, 75))
        )
    )
    assert found.degrees == effective - 1
    assert found.error == pytest.approx(math.sqrt(spread(best) * effective / (effective - 1)), rel=1e-4)
    assert found.interval is not None and found.error is not None
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, found.degrees) * found.error, rel=1e-4)
    assert (found.labels, found.worth is not None and found.worth > 85) == (85, True)


def test_with_labels_of_the_same_questions_it_is_about_the_paired_difference() -> None:
    own, other = draw_unpaired(2, 200, slice(0, 80), slice(0, 80))
    found = correct_difference(own, other)
    judged, labels = own.judged - other.judged, own.labels - other.labels
    paired = correct_mean(judged[:80], labels[:80], judged[80:])
    assert found.labelled == pytest.approx(paired.labelled, rel=1e-12)
    assert found.value == pytest.approx(paired.value, abs=0.02)
    assert found.interval is not None and paired.interval is not None
    width, of_paired = found.interval.high - found.interval.low, paired.interval.high - paired.interval.low
    assert width == pytest.approx(of_paired, rel=0.05)


@pytest.mark.parametrize(("own", "other"), [((0, 50), (50, 100)), ((0, 50), (40, 90)), ((0, 20), (20, 90))])
def test_the_interval_covers_what_people_would_say(own: tuple[int, int], other: tuple[int, int]) -> None:
    found = [correct_difference(*draw_unpaired(seed, 300, slice(*own), slice(*other))).interval for seed in range(600)]
    covered = sum(interval is not None and interval.low <= 0.1 <= interval.high for interval in found)
    assert 552 <= covered <= 588  # 92% to 98%


def test_the_judges_favour_is_taken_out() -> None:
    own, other = draw_unpaired(3, 2000, slice(0, 400), slice(400, 800), likes=0.3)
    assert own.judged.mean() - other.judged.mean() > 0.25
    assert correct_difference(own, other).value == pytest.approx(0.1, abs=0.06)


def test_questions_of_a_cluster_are_not_independent() -> None:
    own, other = draw_unpaired(4, 60, slice(0, 20), slice(20, 40))
    thrice = [Side(*(np.repeat(numbers, 3) for numbers in side)) for side in (own, other)]
    once, apart = correct_difference(own, other), correct_difference(*thrice)
    together = correct_difference(*thrice, clusters=[at // 3 for at in range(180)])
    assert together.value == pytest.approx(once.value, rel=1e-9)
    assert together.error == pytest.approx(once.error, rel=1e-9)
    assert apart.error is not None and once.error is not None
    assert apart.error < 0.65 * once.error


def test_rarely_chosen_answers_count_more() -> None:
    own, other = draw_unpaired(5, 100, slice(0, 30), slice(40, 80))
    weights = np.where(np.arange(100) % 2 == 0, 3.0, 1.0)
    found = correct_difference(own._replace(weights=weights), other)
    expected = np.average(own.labels[:30], weights=weights[:30]) - other.labels[40:80].mean()
    assert found.labelled == pytest.approx(expected, rel=1e-12)


def test_a_judge_that_tells_nothing_leaves_the_labels() -> None:
    own, other = (side._replace(judged=np.full(60, 0.8)) for side in draw_unpaired(6, 60, slice(0, 25), slice(25, 50)))
    found = correct_difference(own, other)
    assert found.value == pytest.approx(found.labelled, rel=1e-12)
    assert found.worth == pytest.approx(50)
