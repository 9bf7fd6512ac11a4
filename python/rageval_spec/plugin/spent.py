"""What an evaluation has spent, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.plugin.budget import Budget


def describe_spent(budget: Budget) -> str:
    """Calls, questions, retries and cost, and what failed or was interrupted; empty if no call was made."""
    calls = budget.calls - budget.asked_of_systems
    spent = (
        f"made {count_noun(calls, 'call')}" if calls else "",
        f"asked systems {count_noun(budget.asked_of_systems, 'question')}" if budget.asked_of_systems else "",
        f"{count_noun(budget.retries, 'retry', 'retries')} after errors" if budget.retries else "",
        f"about {budget.cost:.4g} USD" if budget.cost else "",
    )
    unfinished = budget.interrupted + budget.under_way
    ended = (
        f"{count_noun(unfinished, 'call')} interrupted before a reply came" if unfinished else "",
        f"the cost of {count_noun(budget.guessed, 'call')} is an estimate, because the endpoint did not report how "
        "many tokens it used"
        if budget.guessed
        else "",
        describe_errors(budget) if budget.errors else "",
    )
    return "; ".join(filter(None, (", ".join(filter(None, spent)), *ended)))


def describe_errors(budget: Budget) -> str:
    """How many of the questions got no usable reply."""
    return f"{budget.errors} of {count_noun(budget.questions, 'question')} got no usable reply"


def advise_retry(budget: Budget, *, is_finished: bool = False) -> str | None:
    """How to retry what failed; None if nothing failed or it was retried already.

    After a finished evaluation, a plain run asks the systems everything again; `--retry-errors` asks only what failed.
    """
    if budget.lasting:
        failed = count_noun(budget.lasting, "question")
        return f"{failed} failed for a reason that a retry does not change; correct the spec or the system first"
    if budget.unread and not budget.retry_errors:
        unread = count_noun(len(budget.unread), "question")
        return f"run again with --retry-errors to retry {unread} whose replies could not be read"
    if budget.errors <= len(budget.unread):
        return None
    return f"run again {'with --retry-errors ' if is_finished else ''}to retry failed calls"
