"""Limits on calls, cost and errors, counted from several threads."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread

import pytest

from rageval_spec.data.chat import (
    CallError,
    ChatReply,
    ChatRequest,
    InterruptedCallError,
    LimitError,
    Message,
    ReplyCounts,
)
from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin.budget import (
    Budget,
    CallLimits,
    EndpointUse,
    Memory,
    Reservation,
    Shard,
    Usage,
    UsageEntry,
    Used,
)
from rageval_spec.spec import loads

SPEC = """version: 1
datasets: {d: {use: beir, path: d}}
systems: {s: {use: bm25}}
metrics: [rr]
limits: {max_errors: %s}
"""


def begin_call(budget: Budget, cost: float = 0.0) -> None:
    """Begin a call as soon as the calls under way leave room for it."""
    while not budget.try_call(cost):
        budget.wait_for_room(cost)


def test_calls_never_exceed_the_limit_however_many_threads_make_them() -> None:
    budget = Budget(max_calls=100)

    def call(_: int) -> bool:
        try:
            begin_call(budget)
        except LimitError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(call, range(400))) == 100
    assert budget.calls == 100


def test_a_reached_limit_says_what_to_do_and_stays_reached() -> None:
    budget = Budget(max_calls=0)
    for _ in range(2):
        with pytest.raises(LimitError, match=r"limits\.max_calls: 0 of 0 calls to models made; run again to continue"):
            begin_call(budget)


def test_cost_is_checked_before_it_is_spent_and_corrected_after() -> None:
    budget = Budget(max_cost=1.0)
    begin_call(budget, 0.9)
    assert budget.cost == 0
    budget.end_call(0.9, 0.1)
    begin_call(budget, 0.9)
    budget.end_call(0.9, 0.9)
    assert budget.cost == pytest.approx(1.0)
    with pytest.raises(LimitError, match=r"limits\.max_cost: 1 of 1 USD are spent, and the next call may cost 0\.2"):
        begin_call(budget, 0.2)


def test_a_call_waits_for_calls_under_way_if_only_they_leave_no_room() -> None:
    budget, begun = Budget(max_cost=1.0), Event()
    begin_call(budget, 0.9)

    def begin() -> None:
        begin_call(budget, 0.9)
        begun.set()

    waiting = Thread(target=begin, daemon=True)
    waiting.start()
    assert not begun.wait(0.1)
    assert budget.stopped is None
    budget.end_call(0.9, 0.05)
    assert begun.wait(10)
    assert budget.calls == 2
    assert budget.cost == pytest.approx(0.05)


def test_a_call_that_waits_for_room_ends_when_there_will_be_none() -> None:
    budget = Budget(max_cost=1.0)
    begin_call(budget, 0.9)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(begin_call, budget, 0.9) for _ in range(4)]
        budget.end_call(0.9, 0.9)
        for future in waiting:
            with pytest.raises(LimitError, match=r"0\.9 of 1 USD are spent, and the next call may cost 0\.9"):
                future.result(10)


@pytest.mark.parametrize("expected", [0.1, 0.3, 0.7])
def test_many_threads_spend_nearly_the_whole_limit_and_never_more(expected: float) -> None:
    """Each call costs a tenth of its expected cost, so the calls under way must not end the evaluation."""
    budget, most = Budget(max_cost=10.0), 0.0

    def call(_: int) -> None:
        nonlocal most
        with suppress(LimitError):
            begin_call(budget, expected)
            budget.end_call(expected, expected / 10)
            most = max(most, budget.cost)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(call, range(round(200 / expected))))
    assert 10 - 1.1 * expected <= most <= 10


def test_errors_are_limited_by_number_or_by_share_once_enough_questions_were_asked() -> None:
    few = Budget(max_errors=1)
    few.count_question(failed=True)
    begin_call(few)
    few.count_question(failed=True)
    with pytest.raises(LimitError, match=r"max_errors: 2 of 2 questions got no usable reply \(limit: 1\)"):
        begin_call(few)
    share = Budget(max_errors=0.1)
    for _ in range(10):
        share.count_question(failed=True)
    for _ in range(9):
        share.count_question()
    begin_call(share)
    share.count_question(failed=True)
    with pytest.raises(LimitError, match=r"11 of 20 questions got no usable reply \(limit: 10%\)"):
        begin_call(share)


def test_the_share_of_failed_questions_does_not_depend_on_the_number_of_calls() -> None:
    budget = Budget(max_errors=0.1)
    for number in range(20):
        for _ in range(3):
            begin_call(budget)
        budget.count_question(failed=number < 3)
    budget.count_error()
    assert "4 of 20 questions" in str(budget.stopped)


def test_retries_count_toward_the_limit_on_calls() -> None:
    budget = Budget(max_calls=3)
    begin_call(budget)
    budget.begin_retry()
    budget.begin_retry()
    with pytest.raises(LimitError, match=r"limits\.max_calls: 3 of 3 calls to models made"):
        budget.begin_retry()
    assert (budget.calls, budget.retries) == (1, 2)


@pytest.mark.parametrize(("written", "read"), [("10", 10), ("1%", 0.01), ("0.5 %", 0.005), ("0", 0)])
def test_max_errors_is_a_number_or_a_share(written: str, read: float) -> None:
    spec = loads(SPEC % written, check_files=False)
    assert spec.limits.budget().max_errors == pytest.approx(read)


@pytest.mark.parametrize("written", ["lots", "-1", "1000000%", "'%'"])
def test_any_other_max_errors_is_refused_with_its_position(written: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SPEC % written, check_files=False)
    assert caught.value.diagnostics[0].position.line == 5


def test_a_summary_of_spending_distinguishes_calls_retries_and_questions() -> None:
    budget = Budget()
    assert (budget.describe(), budget.advise()) == ("", None)
    budget.try_call(is_of_system=True)
    assert budget.describe() == "asked systems 1 question; 1 call interrupted before a reply came"
    budget.end_call()
    budget.try_call(0.5)
    budget.end_call(0.5, 0.25)
    budget.begin_retry()
    budget.begin_retry()
    budget.count_question()
    budget.count_question(failed=True)
    assert budget.describe() == (
        "made 1 call, asked systems 1 question, 2 retries after errors, about 0.25 USD; "
        "1 of 2 questions got no usable reply"
    )
    assert budget.advise() == "run again to retry failed calls"
    budget.count_unread(b"1")
    budget.count_unread(b"1")
    assert budget.advise() == "run again with --retry-failed to retry 1 question whose replies could not be read"
    budget.retry_failed = True
    assert budget.advise() is None


def test_calls_without_a_reply_at_the_end_were_interrupted_and_did_not_fail() -> None:
    budget = Budget()
    for _ in range(3):
        budget.try_call()
    budget.end_call(is_interrupted=True)
    budget.end_call()
    assert budget.describe() == "made 3 calls; 2 calls interrupted before a reply came"


def test_a_guessed_cost_is_marked_as_an_estimate() -> None:
    budget = Budget()
    budget.try_call()
    budget.end_call(cost=0.5)
    budget.count_guess()
    assert budget.describe() == (
        "made 1 call, about 0.5 USD; the cost of 1 call is an estimate, because the endpoint did not report how many "
        "tokens it used"
    )


def test_a_reservation_counts_its_call_its_retries_and_its_cost() -> None:
    budget = Budget(max_calls=3)
    with Reservation(budget, 0.9) as reservation:
        assert reservation.begin() is None
        reservation.begin_retry()
        assert (budget.calls, budget.retries, budget.under_way) == (1, 1, 1)
        reservation.cost = 0.25
    assert (budget.cost, budget.under_way, budget.asked_of_systems) == (0.25, 0, 0)
    with Reservation(budget, is_of_system=True) as reservation:
        reservation.begin()
        reservation.begin_retry()
        reservation.begin_retry()
        with pytest.raises(LimitError, match="3 of 3 calls to systems made"):
            reservation.begin_retry()
    assert budget.asked_of_systems == 1


def test_a_call_gets_a_function_to_wait_with_if_calls_under_way_leave_no_room() -> None:
    budget = Budget(max_cost=1.0)
    with Reservation(budget, 0.9) as first:
        first.begin()
        second = Reservation(budget, 0.9)
        wait = second.begin()
    assert wait is not None
    wait()
    assert second.begin() is None


@pytest.mark.parametrize(
    ("error", "interrupted"), [(CallError("answered 500"), 0), (InterruptedCallError(""), 1), (LimitError(""), 1)]
)
def test_a_call_that_the_evaluation_stopped_was_interrupted(error: Exception, interrupted: int) -> None:
    budget = Budget()
    with pytest.raises(type(error)), Reservation(budget) as reservation:
        reservation.begin()
        raise error
    assert (budget.interrupted, budget.under_way) == (interrupted, 0)


def test_a_call_that_was_not_allowed_was_not_interrupted() -> None:
    budget = Budget(max_calls=0)
    with pytest.raises(LimitError), Reservation(budget) as reservation:
        reservation.begin()
    assert (budget.interrupted, budget.under_way) == (0, 0)


def ask(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),))


def test_equal_requests_count_once_for_each_model_and_sample() -> None:
    usage, reply = Usage(), ChatReply("yes", 7, 3)
    usage.count("llm", [(ask("a"), reply), (ask("b"), reply), (ask("a"), reply)])
    usage.count("llm", [(ask("a"), reply)])
    assert usage.of("llm") == Used(2, 14, 6)
    usage.count("llm", [(ask("a"), reply)], sample=1)
    usage.count("other", [(ask("a"), reply)])
    assert (usage.of("llm"), usage.of("other")) == (Used(3, 21, 9), Used(1, 7, 3))


def test_tokens_are_unknown_as_soon_as_one_reply_does_not_report_them() -> None:
    usage = Usage()
    usage.count("llm", [(ask("a"), ChatReply("yes", 7, 3)), (ask("b"), ChatReply("yes", None, 3))])
    usage.count("llm", [(ask("c"), ChatReply("yes", 7, 3))])
    assert usage.of("llm") == Used(3, None, 9)


def test_a_model_that_was_not_asked_has_used_nothing() -> None:
    assert Usage().of("llm") == Used(0, 0, 0)


def test_threads_that_get_the_same_replies_count_them_once() -> None:
    usage, reply = Usage(), ChatReply("yes", 7, 3)
    with ThreadPoolExecutor(8) as pool:
        for number in range(400):
            pool.submit(usage.count, "llm", [(ask(str(number % 100)), reply)])
    assert usage.of("llm") == Used(100, 700, 300)


def test_the_seconds_of_a_metric_are_those_of_its_samples() -> None:
    usage = Usage()
    assert usage.time_of("faithfulness") is None
    usage.time("faithfulness", 10, 2.0)
    usage.time("faithfulness", 30, 2.0)
    usage.time("faithfulness", 0, 0.1)
    assert usage.time_of("faithfulness") == pytest.approx(4.1 / 40)
    assert usage.time_of("other") is None


def test_questions_count_by_whether_their_last_reply_could_be_read() -> None:
    usage, reply = Usage(), ChatReply("yes", seconds=0.5)
    usage.count_question("llm", ask("a"), [reply], is_read=True)
    usage.count_question("llm", ask("a"), [reply], is_read=True)
    usage.count_question("llm", ask("b"), [reply, reply], is_read=True)
    usage.count_question("llm", ask("c"), [reply] * 3, is_read=False)
    usage.count_question("llm", ask("d"), [], is_read=False)
    assert usage.replies_of("llm") == ReplyCounts(1, 1, 1, 3)
    assert usage.replies_of("other") == ReplyCounts()


def test_calls_for_replies_that_could_not_be_read_are_told() -> None:
    budget, reply = Budget(), ChatReply("yes")
    for _ in range(4):
        budget.try_call()
        budget.end_call(0.0, 0.0)
    budget.usage.count_question("llm", ask("a"), [reply] * 3, is_read=True)
    budget.usage.count_question("llm", ask("b"), [reply], is_read=True)
    assert budget.describe() == "made 4 calls, 2 calls of these because a reply could not be read"


def test_only_new_replies_take_seconds() -> None:
    usage, new = Usage(), ChatReply("yes", seconds=0.5)
    stored = ChatReply("yes", reused=True)
    usage.count_question("llm", ask("a"), [stored], is_read=True)
    assert usage.asked_now() == {}
    usage.count_question("llm", ask("b"), [stored, new], is_read=True)
    usage.count_question("llm", ask("c"), [new], is_read=True)
    assert usage.asked_now() == {"llm": EndpointUse(2, 1.0, ReplyCounts(1, 1, 0, 1))}
    assert usage.replies_of("llm") == ReplyCounts(2, 1, 0, 1)


def test_a_memory_forgets_an_object_that_is_freed() -> None:
    class Owner:
        pass

    memory, first, second = Memory(), Owner(), Owner()
    known = memory.remember(first, object)
    assert memory.remember(first, object) is known
    assert memory.remember(second, object) is not known
    assert len(memory) == 2
    del first, second
    gc.collect()
    assert len(memory) == 0


@pytest.mark.parametrize(("calls", "price"), [(3, 0.1), (10, 0.1), (7, 0.7), (100, 0.01)])
def test_as_many_calls_as_the_limit_pays_for_are_made(calls: int, price: float) -> None:
    budget = Budget(max_cost=round(calls * price, 2))
    for _ in range(calls):
        begin_call(budget, price)
        budget.end_call(price, price)
    with pytest.raises(LimitError, match="max_cost"):
        begin_call(budget, price)


@pytest.mark.parametrize("together", [3, 10])
def test_calls_under_way_leave_the_room_that_they_do_not_need(together: int) -> None:
    budget = Budget(max_cost=round(together * 0.1, 1))
    assert all(budget.try_call(0.1) for _ in range(together))


@pytest.mark.parametrize(("share", "asked"), [(0.07, 100), (0.29, 100), (0.1, 30)])
def test_as_many_errors_as_the_share_allows_are_allowed(share: float, asked: int) -> None:
    budget = Budget(max_errors=share)
    for place in range(asked):
        budget.count_question(failed=place >= asked - round(share * asked))
    assert budget.stopped is None
    budget.count_question(failed=True)
    assert budget.stopped is not None


def count_calls(budget: Budget, *, is_of_system: bool, most: int = 100) -> int:
    """How many calls may be made, up to `most`."""
    for made in range(most):
        try:
            assert budget.try_call(is_of_system=is_of_system)
        except LimitError:
            return made
        budget.end_call()
    return most


@pytest.mark.parametrize(
    ("limits", "systems", "models"),
    [
        (60, 60, 60),
        (CallLimits(systems=60, models=90), 60, 90),
        (CallLimits(models=9), 100, 9),
        (CallLimits(systems=9), 9, 100),
        (None, 100, 100),
    ],
)
def test_questions_to_systems_take_no_calls_from_models(
    limits: int | CallLimits | None, systems: int, models: int
) -> None:
    assert count_calls(Budget(max_calls=limits), is_of_system=True) == systems
    assert count_calls(Budget(max_calls=limits), is_of_system=False) == models
    both = Budget(max_calls=limits)
    assert count_calls(both, is_of_system=True, most=systems) == systems
    assert count_calls(both, is_of_system=False) == models


def test_a_retry_counts_where_its_call_does() -> None:
    budget = Budget(max_calls=CallLimits(systems=2, models=1))
    with Reservation(budget, is_of_system=True) as reservation:
        reservation.begin()
        reservation.begin_retry()
        assert budget.try_call()
        with pytest.raises(LimitError, match="2 of 2 calls to systems made"):
            reservation.begin_retry()


@pytest.mark.parametrize(
    ("costs", "total", "told"),
    [
        ([], None, ""),
        ([0.0], ("$0.00", "known"), "made 1 call"),
        ([0.25, 0.5], ("$0.75", "known"), "made 2 calls, about 0.75 USD"),
        ([None, None], ("unknown", "unknown"), "made 2 calls, cost unknown"),
        (
            [0.25, None],
            ("at least $0.25", "partly known"),
            "made 2 calls, at least 0.25 USD (the cost of 1 call is unknown)",
        ),
    ],
)
def test_an_unknown_cost_is_said_and_is_not_zero(
    costs: list[float | None], total: tuple[str, str] | None, told: str
) -> None:
    budget = Budget()
    for cost in costs:
        with Reservation(budget) as reservation:
            reservation.begin()
            reservation.cost = cost
    found = budget.total_cost
    assert (None if found is None else (str(found), found.status)) == total
    assert budget.describe() == told


def test_limits_on_calls_are_written_as_one_number_or_as_two() -> None:
    one = loads((SPEC % 0).replace("max_errors: 0", "max_calls: 60"), check_files=False)
    two = loads((SPEC % 0).replace("max_errors: 0", "max_calls: {systems: 60, models: 500}"), check_files=False)
    assert (one.limits.call_limits, two.limits.call_limits) == (CallLimits(60, 60), CallLimits(60, 500))
    with pytest.raises(SpecError, match="did you mean 'systems'"):
        loads((SPEC % 0).replace("max_errors: 0", "max_calls: {system: 60}"), check_files=False)


def test_what_several_processes_counted_is_added_and_equal_requests_are_one() -> None:
    first, second, both = Usage(), Usage(), Usage()
    logs: list[list[UsageEntry]] = [[], []]
    first.log, second.log = logs
    entry = UsageEntry(False, "m", 0, b"a" * 16, 7, 3)
    first.add([entry, entry, UsageEntry(True, "m", 0, b"q" * 16, 2, 1)])
    second.add([entry, UsageEntry(False, "m", 0, b"b" * 16, 5, None), UsageEntry(True, "m", 0, b"r" * 16, 1, 0)])
    assert [len(log) for log in logs] == [2, 3]
    for log in logs:
        both.add(log)
    assert both.of("m") == Used(2, 12, None)
    assert both.replies_of("m") == ReplyCounts(later=1, never=1, repeats=1)


def test_what_several_processes_spent_is_added() -> None:
    budget, other = Budget(max_errors=1), Budget()
    with Reservation(other) as reservation:
        reservation.begin()
        reservation.cost = 0.25
    other.count_question(failed=True)
    for _ in range(2):
        budget.add(other.spent)
    assert (budget.calls, budget.cost, budget.questions, budget.errors) == (2, 0.5, 2, 2)
    assert budget.stopped is None
    budget.check_errors()
    assert "2 of 2 questions got no usable reply (limit: 1)" in str(budget.stopped)


def test_a_shards_share_of_rates_and_of_calls_at_once() -> None:
    assert [Shard(number, 3).take_at_once(2) for number in (1, 2, 3)] == [1, 1, 1]
    assert [Shard(number, 3).take_at_once(7) for number in (1, 2, 3)] == [2, 2, 3]
    assert Shard(2, 4).take_rate(10.0) == 2.5
    assert Shard(2, 4).take_rate(None) is None
