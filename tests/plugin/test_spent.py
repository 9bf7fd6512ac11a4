from __future__ import annotations

from rageval_spec.plugin.budget import Budget


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
    assert budget.advise() == "run again with --retry-errors to retry 1 question whose replies could not be read"
    budget.retry_errors = True
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
