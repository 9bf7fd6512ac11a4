"""Samples whose weighted counts are those of all traffic."""

from collections import Counter
from random import Random
from statistics import mean, stdev

import pytest

from rageval_spec.data.traces import Trace
from rageval_spec.monitoring.ledger import ClaimedTrace, SampledTrace
from rageval_spec.monitoring.traces.sampling import Sampler, draw
from tests.monitoring.seen_traces import BEGAN, disliked, make_trace


def choose(sampler: Sampler, trace: Trace, weight: float | None = None, started: float = BEGAN) -> SampledTrace:
    return sampler.choose(ClaimedTrace(trace.id, started, weight, trace))


def test_a_lower_rate_is_a_part_of_a_higher_one() -> None:
    names = [f"t{i}" for i in range(2000)]
    low, high = (
        {name for name in names if choose(Sampler(rate), make_trace(name)).weight is not None} for rate in (0.05, 0.2)
    )
    assert low < high
    assert 60 < len(low) < 140


def test_weights_add_up_to_all_traces_on_average() -> None:
    totals = []
    for run in range(40):
        sampler = Sampler(0.1, at_least=20, by="route")
        names = [f"{run}-{i}" for i in range(500)]
        chosen = [choose(sampler, make_trace(one, metadata={"route": "ab"[i % 5 == 0]})) for i, one in enumerate(names)]
        totals.append(sum(one.weight or 0 for one in chosen))
    assert sum(totals) / len(totals) == pytest.approx(500, rel=0.05)


def test_each_stratum_and_hour_has_its_first_traces() -> None:
    sampler = Sampler(1e-9, at_least=3, by="route")
    for started in (BEGAN, BEGAN + 3600):
        for route in ("a", "b"):
            chosen = [choose(sampler, make_trace(f"{route}{i}{started}", metadata={"route": route}), started=started)
                      for i in range(10)]  # fmt: skip
            assert [one.weight for one in chosen[:3]] == [1.0, 1.0, 1.0]
            assert {one.weight for one in chosen[3:]} == {None}


def test_the_least_number_goes_on_after_a_restart() -> None:
    hour = int(BEGAN // 3600) * 3600
    sampler = Sampler(1e-9, at_least=3, kept={("", hour): 3})
    assert choose(sampler, make_trace("t1")).weight is None


def test_what_a_rule_keeps_is_none_of_the_first_ones() -> None:
    sampler = Sampler(1e-9, at_least=2, always=("errors",))
    failed = [choose(sampler, make_trace(f"e{i}", answer=None)) for i in range(5)]
    others = [choose(sampler, make_trace(f"t{i}")) for i in range(3)]
    assert [one.weight for one in others] == [1.0, 1.0, None]
    assert {one.stratum for one in failed} == {None}  # so the ledger does not count them either


@pytest.mark.parametrize("is_restarted", [False, True])
def test_sums_are_those_of_all_traffic_whatever_the_order(is_restarted: bool) -> None:
    """Bursts, strata that begin within the hour, rules, and restarts: values depend on all of these."""
    random, errors = Random(5), []
    for run in range(150):
        sampler, kept, true, found = Sampler(0.2, 10, "route", ("errors",)), Counter[tuple[str, int]](), 0.0, 0.0
        for at in range(300):
            if is_restarted and at % 70 == 69:
                sampler = Sampler(0.2, 10, "route", ("errors",), kept)
            is_burst = 100 <= at < 150
            route = "late" if at > 200 and random.random() < 0.5 else "burst" if is_burst else "usual"
            is_failed = random.random() < 0.1
            value = 5.0 * is_failed + 3.0 * (route == "late") + at / 100
            trace = make_trace(f"{run}-{at}", None if is_failed else "Ada.", metadata={"route": route})
            chosen = choose(sampler, trace)
            true, found = true + value, found + (chosen.weight or 0.0) * value
            if chosen.weight is not None and chosen.stratum is not None:
                kept[chosen.stratum, int(BEGAN // 3600) * 3600] += 1
        errors.append(found / true - 1)
    assert abs(mean(errors)) < 3 * stdev(errors) / len(errors) ** 0.5
    assert stdev(errors) < 0.2


def test_rules_keep_errors_and_disliked_answers() -> None:
    sampler = Sampler(1e-9, always=("errors", "thumbs_down"))
    assert choose(sampler, make_trace("t1", answer=None)).weight == 1.0
    assert choose(sampler, disliked("t2")).weight == 1.0
    assert choose(sampler, make_trace("t3")).weight is None


def test_a_trace_that_was_chosen_keeps_its_weight() -> None:
    assert choose(Sampler(1e-9), make_trace("t1"), weight=20.0).weight == 20.0


def test_draws_are_uniform_and_depend_on_the_id_alone() -> None:
    numbers = sorted(draw(f"trace-{i}") for i in range(2000))
    assert draw("trace-7") == draw("trace-7")
    assert max(abs(number - (i + 0.5) / 2000) for i, number in enumerate(numbers)) < 0.04
