"""Which stored answers an evaluation takes over, and what it says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import ResumeRule
from rageval_spec.recorded.answers_and_steps import AnswerRow
from rageval_spec.store.checkout import CodeState
from rageval_spec.store.store import MemoryAnswers
from rageval_spec.systems.shared import kept_answers
from rageval_spec.systems.shared.kept_answers import KeptAnswers
from rageval_spec.systems.shared.question_templates import SystemQuestion, digest_of
from rageval_spec.wording import describe_taken_over
from tests.systems.asking import collection
from tests.systems.shared.scripted import scripted


def question(text: str) -> SystemQuestion:
    told = {"question": text}
    return SystemQuestion(digest_of(told), told)


YES = AnswerRow("yes").pack()
A, B, C = question("a"), question("b"), question("c")
UNKNOWN, AT_ONE, AT_TWO = CodeState(), CodeState("1" * 40, ""), CodeState("2" * 40, "")


def start(answers: MemoryAnswers, code: CodeState = UNKNOWN, **keys: Any) -> KeptAnswers:
    """The kept answers of a new evaluation."""
    rule = ResumeRule(keys.pop("longest", 3600.0), keys.pop("is_fresh", False), lambda: code)
    budget = Budget(retry_failed=keys.pop("retry_failed", False))
    return KeptAnswers(scripted(answers=answers, budget=budget, resume=rule, **keys))


def ask(kept: KeptAnswers, *questions: SystemQuestion) -> None:
    kept.begin()
    for asked in questions:
        kept.keep(asked.digest, YES)


def end(kept: KeptAnswers, digests: list[bytes]) -> None:
    kept.finish(digests)
    kept.end()


def found(kept: KeptAnswers) -> list[str]:
    there = kept.find([A, B, C])
    return [asked.told["question"] for asked in (A, B, C) if asked.digest in there]


def test_an_unfinished_evaluation_is_continued_until_it_reaches_its_outcome() -> None:
    answers = MemoryAnswers()
    ask(start(answers), A)
    going_on = start(answers)
    assert found(going_on) == ["a"]
    ask(going_on, B)
    end(going_on, [A.digest, B.digest])
    assert found(start(answers)) == []


@pytest.mark.parametrize(
    ("before", "after", "longest", "reason"),
    [
        (CodeState(), CodeState(), 3600.0, None),
        (AT_ONE, AT_ONE, 3600.0, None),
        (AT_ONE, AT_TWO, 3600.0, "the commit changed from 1111111111 to 2222222222"),
        (CodeState(), AT_ONE, 3600.0, "the commit changed from none to 1111111111"),
        (AT_ONE, CodeState(), 3600.0, "the commit changed from 1111111111 to none"),
        (AT_ONE, CodeState("1" * 40, "ab"), 3600.0, "the uncommitted changes are others"),
        (CodeState("1" * 40, "cd"), CodeState("1" * 40, "ab"), 3600.0, "the uncommitted changes are others"),
        (CodeState("1" * 40, "ab"), CodeState("1" * 40, "ab"), 3600.0, None),
        (CodeState("1" * 40), CodeState("1" * 40), 3600.0, "git did not list what changed since the commit"),
        (AT_ONE, AT_ONE, 0.0, "resume is never"),
    ],
)
def test_it_is_continued_only_with_the_same_code(
    before: CodeState, after: CodeState, longest: float, reason: str | None
) -> None:
    answers = MemoryAnswers()
    ask(start(answers, before), A)
    later = start(answers, after, longest=longest)
    assert later.explain_end() == reason
    assert found(later) == ([] if reason else ["a"])


def test_it_is_continued_only_while_it_is_young(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = MemoryAnswers()
    monkeypatch.setattr(kept_answers, "_tell_time", lambda: "2026-03-01T10:00:00+00:00")
    ask(start(answers), A)
    monkeypatch.setattr(kept_answers, "_tell_time", lambda: "2026-03-01T11:00:00+00:00")
    assert found(start(answers)) == ["a"]
    monkeypatch.setattr(kept_answers, "_tell_time", lambda: "2026-03-01T11:30:00+00:00")
    late = start(answers)
    assert (found(late), late.explain_end()) == ([], "it began 1.5 h ago, and 'resume' allows 1 h")
    ask(late, B)
    assert found(start(answers)) == ["b"], "the answers of the one before are not found again"


def test_other_files_of_code_end_it() -> None:
    answers = MemoryAnswers()
    ask(start(answers, code_files={"rag/steps.py": "1"}), A)
    assert found(start(answers, code_files={"rag/steps.py": "1"})) == ["a"]
    other = start(answers, code_files={"rag/steps.py": "2"})
    assert (found(other), other.explain_end()) == ([], "rag/steps.py changed")
    assert found(start(answers)) == []


def test_a_fresh_evaluation_takes_nothing_over_and_can_itself_be_continued() -> None:
    answers = MemoryAnswers()
    ask(start(answers), A, B)
    fresh = start(answers, is_fresh=True)
    assert (found(fresh), fresh.explain_end()) == ([], "--fresh")
    ask(fresh, C)
    assert found(start(answers)) == ["c"]


def test_a_retry_takes_over_what_the_last_evaluation_answered_and_nothing_older() -> None:
    answers = MemoryAnswers()
    first = start(answers)
    ask(first, A, B, C)
    end(first, [A.digest, B.digest, C.digest])
    second = start(answers)
    ask(second, A)  # b failed, and c was not among its questions
    end(second, [A.digest, B.digest])
    retry = start(answers, retry_failed=True)
    assert found(retry) == ["a"]
    ask(retry, B)
    end(retry, [A.digest, B.digest])
    assert found(start(answers, retry_failed=True)) == ["a", "b"]


def test_a_retry_that_was_killed_is_retried_from_where_it_was() -> None:
    answers = MemoryAnswers()
    first = start(answers)
    ask(first, A)
    end(first, [A.digest, B.digest, C.digest])
    ask(start(answers, retry_failed=True), B)
    assert found(start(answers, retry_failed=True)) == ["a", "b"]
    assert found(start(answers)) == ["b"], "without the option, nothing of a finished evaluation is taken over"


def test_a_retry_after_a_kill_repairs_the_evaluation_that_was_killed() -> None:
    answers = MemoryAnswers()
    first = start(answers)
    ask(first, A, B, C)
    end(first, [A.digest, B.digest, C.digest])
    ask(start(answers), A)
    assert found(start(answers, retry_failed=True)) == ["a"]


def test_answers_of_an_earlier_version_are_those_of_finished_evaluations() -> None:
    answers = MemoryAnswers()
    system = scripted(answers=answers)
    answers.keep(system.key, {A.digest: YES})
    answers.keep(f"unfinished:{system.key}", {b"start": b'{"time": "2026-03-01T10:00:00+00:00"}', B.digest: YES})
    assert found(start(answers)) == []
    retry = start(answers, retry_failed=True)
    assert found(retry) == ["a"]
    ask(retry, C)
    end(retry, [A.digest, C.digest])
    assert found(start(answers, retry_failed=True)) == ["a", "c"]


def test_kept_answers_are_found_until_the_version_changes_unless_the_evaluation_is_fresh() -> None:
    answers = MemoryAnswers()
    for asked in (A, B):
        each = start(answers)
        ask(each, asked)
        end(each, [asked.digest])
    always: dict[str, Any] = {"reuse": "always", "version": "1"}
    assert found(start(answers, **always)) == ["a", "b"]
    assert found(start(answers, reuse="always", version="2")) == []
    assert found(start(answers, is_fresh=True, **always)) == []


def test_two_evaluations_at_the_same_time_share_answers_also_after_one_ended() -> None:
    answers = MemoryAnswers()
    first = start(answers, AT_ONE)
    ask(first, A)
    second = start(answers, AT_ONE)
    second.begin()
    ask(first, B)
    end(first, [A.digest, B.digest])
    assert found(second) == ["a", "b"]
    elsewhere = start(answers, AT_TWO)
    elsewhere.begin()
    assert found(elsewhere) == []


def test_evaluations_of_two_commits_at_the_same_time_share_nothing() -> None:
    answers = MemoryAnswers()
    first, second = start(answers, AT_ONE), start(answers, AT_TWO)
    ask(first, A)
    ask(second, B)
    ask(first, C)
    assert (found(first), found(second)) == (["a", "c"], ["b"])
    end(first, [A.digest, C.digest])
    assert found(start(answers, AT_TWO)) == ["b"]


class Killed(MemoryAnswers):
    """Is killed when something is removed."""

    is_killed = False

    def drop(self, model: str, questions: Sequence[bytes]) -> None:
        raise KeyboardInterrupt


def test_a_kill_in_the_middle_of_finishing_leaves_it_unfinished() -> None:
    answers = Killed()
    kept = start(answers)
    ask(kept, A)
    with pytest.raises(KeyboardInterrupt):
        kept.finish([A.digest])
    assert found(start(answers)) == ["a"]


def test_nothing_remains_of_an_evaluation_that_reached_its_outcome_but_its_answers() -> None:
    answers = MemoryAnswers()
    kept = start(answers)
    ask(kept, A)
    end(kept, [A.digest, B.digest])
    assert {key: len(of) for key, of in answers._answers.items() if of} == {scripted().key: 3}


def take_over(answers: MemoryAnswers, code: CodeState, **keys: Any) -> Any:
    rule = ResumeRule(3600.0, find_code=lambda: code)
    budget = Budget(retry_failed=keys.pop("retry_failed", False))
    system = scripted(answers=answers, budget=budget, resume=rule, **keys)
    taken = system.answer(collection({"q1": "a", "q2": "b"})).taken_over
    system.finish("golden")
    return taken


TIMES = ["2026-03-01T10:42:07+00:00", "2026-03-02T08:00:00+00:00"]


def ask_in_turn(answers: MemoryAnswers, monkeypatch: pytest.MonkeyPatch, states: Mapping[str, CodeState]) -> None:
    for time, (text, code) in zip(TIMES, states.items(), strict=False):
        monkeypatch.setattr(kept_answers, "_tell_time", lambda time=time: time)
        each = start(answers, code, reuse="always", version="v7")
        ask(each, question(text))
        end(each, [question(text).digest])


def test_what_was_taken_over_has_its_times_and_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = MemoryAnswers()
    ask_in_turn(answers, monkeypatch, {"a": AT_ONE})
    taken = take_over(answers, AT_ONE, reuse="always", version="v7")
    assert (taken.answers, taken.questions, taken.versions) == (1, 2, ())
    assert describe_taken_over(taken) == (
        "1 of 2 answers is taken over from earlier evaluations (reuse: always, version: v7), "
        "asked 2026-03-01 10:42 UTC at commit 1111111111"
    )
    assert take_over(MemoryAnswers(), AT_ONE) is None


@pytest.mark.parametrize("text", ["a", "b"])
def test_answers_of_two_commits_are_told_apart(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = MemoryAnswers()
    ask_in_turn(answers, monkeypatch, {text: AT_ONE})
    taken = take_over(answers, AT_TWO, reuse="always", version="v7")
    assert taken.commits == {"1111111111": 1, "2222222222": 1}
    assert describe_taken_over(taken).endswith("; the answers are of 2 versions of the code: 1111111111 and 2222222222")


def test_answers_that_were_asked_at_two_times_say_both(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = MemoryAnswers()
    ask_in_turn(answers, monkeypatch, {"a": AT_ONE, "b": AT_ONE})
    taken = take_over(answers, AT_ONE, reuse="always", version="v7")
    assert describe_taken_over(taken).endswith(
        ", asked from 2026-03-01 10:42 to 2026-03-02 08:00 UTC at commit 1111111111"
    )


def test_answers_of_an_earlier_version_have_no_time() -> None:
    answers = MemoryAnswers()
    answers.keep(scripted().key, {A.digest: YES, B.digest: YES})
    taken = take_over(answers, AT_ONE, retry_failed=True)
    assert describe_taken_over(taken) == (
        "2 of 2 answers are taken over from the last evaluation (--retry-failed), asked at an unknown time"
    )
