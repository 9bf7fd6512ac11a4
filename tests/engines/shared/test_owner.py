from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, LimitError, Message
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.engines.shared.message_line import LostOwnerError
from rageval_spec.plugin import Shared
from rageval_spec.plugin.budget import Budget
from rageval_spec.store.store import MemoryAnswers
from tests.engines.shared.office import Office

KEY = b"question"


def open_office(budget: Budget | None = None) -> Office:
    return Office(Shared(MemoryAnswers(), budget or Budget()))


def test_answers_are_kept_by_the_owner_and_found_by_all() -> None:
    office = open_office()
    one, two = office.hire("one"), office.hire("two")
    one.answers.keep("model", {KEY: b"yes"})
    assert office.shared.answers.find("model", [KEY]) == {KEY: b"yes"}
    assert two.answers.find("model", [KEY, b"other"]) == {KEY: b"yes"}
    assert (two.answers.has_any("model"), two.answers.has_any("other")) == (True, False)
    two.answers.drop("model", [KEY])
    assert one.answers.find("model", [KEY]) == {}


def test_only_one_worker_at_a_time_holds_a_claim_and_learns_the_answer_with_it() -> None:
    office = open_office()
    one, two = office.hire("one"), office.hire("two")
    assert one.answers.claim("model", KEY)
    assert not two.answers.claim("model", KEY)
    assert two.answers.claim("other", KEY)
    one.answers.keep("model", {KEY: b"yes"})
    one.answers.release("model", KEY)
    one.answers.has_any("model")  # what is asked later arrives later
    assert two.answers.claim("model", KEY)
    before = len(office.sent)
    assert two.answers.find("model", [KEY]) == {KEY: b"yes"}
    assert len(office.sent) == before


def test_a_lost_worker_frees_what_it_held_and_begins_nothing_more() -> None:
    office = open_office(Budget(max_calls=10))
    lost, other = office.hire("lost", is_limited=True), office.hire("other", is_limited=True)
    assert lost.answers.claim("model", KEY)
    lost.budget.try_call(0.5)
    assert lost.pace is not None and other.pace is not None
    slow = lost.pace("endpoint")(Clock(), None, None, 1)
    slow.take(1).__enter__()
    line = office.open_line("lost")
    line.post("begin_task", 7)
    line.ask("flush")
    office.owner.lose_task(7)
    assert other.answers.claim("model", KEY)
    with other.pace("endpoint")(Clock(), None, None, 1).take(1):
        pass  # the slot is free
    assert (office.shared.budget.under_way, office.shared.budget.interrupted) == (0, 1)
    with pytest.raises(LostOwnerError):
        lost.budget.try_call()
    with pytest.raises(LostOwnerError), slow.take(1):
        pass
    lost.answers.keep("model", {KEY: b"paid"})  # what is paid is kept all the same
    assert other.answers.find("model", [KEY, KEY]) == {KEY: b"paid"}


def test_calls_of_all_workers_count_towards_one_limit() -> None:
    office = open_office(Budget(max_calls=3))
    workers = [office.hire(name, is_limited=True) for name in ("one", "two")]
    for worker in (workers[0], workers[1], workers[1]):
        assert worker.budget.try_call()
    with pytest.raises(LimitError, match="3 of 3 calls to models made"):
        workers[0].budget.try_call()
    with pytest.raises(LimitError):
        workers[1].budget.begin_retry()
    assert office.shared.budget.calls == 3


def test_an_expensive_call_waits_for_those_under_way() -> None:
    office = open_office(Budget(max_cost=1.0))
    one, two = (office.hire(name, is_limited=True) for name in ("one", "two"))
    assert one.budget.try_call(0.8)
    assert not two.budget.try_call(0.8)
    one.budget.end_call(0.8, 0.1)
    one.answers.has_any("model")
    assert two.budget.try_call(0.8)


def test_counts_arrive_without_texts() -> None:
    office = open_office()
    worker = office.hire("one")
    request = ChatRequest((Message("user", "a secret question"),))
    reply = ChatReply("a secret reply", 7, 3, seconds=0.5)
    worker.budget.usage.count("chat", [(request, reply)])
    worker.budget.usage.count("chat", [(request, reply)])
    worker.budget.usage.count_question("chat", request, [reply], is_read=True)
    worker.budget.usage.time("faithfulness", 2, 1.5)
    worker.budget.usage.time_answers("bot", 3, 2.0)
    worker.budget.count_question(failed=True, is_lasting=True)
    worker.budget.count_unread(b"digest")
    worker.budget.count_guess()
    worker.answers.has_any("model")
    budget = office.shared.budget
    assert (budget.usage.of("chat").calls, budget.usage.of("chat").input_tokens) == (1, 7)
    assert budget.usage.asked_now()["chat"].seconds == 0.5
    assert budget.usage.metric_times == {"faithfulness": (2, 1.5)}
    assert budget.usage.answer_times == {"bot": (3, 2.0)}
    assert (budget.questions, budget.errors, budget.lasting, budget.guessed) == (1, 1, 1, 1)


def test_progress_is_the_sum_of_all_workers() -> None:
    shown: list[tuple[str, int, int]] = []

    def counting(label: str, unit: str | None) -> object:
        return lambda done, total, unit=None: shown.append((label, done, total))

    office = Office(Shared(counting=counting))  # type: ignore[arg-type]
    one, two = (office.open_line(name) for name in ("one", "two"))
    for line, done, total in ((one, 3, 10), (two, 5, 10), (one, 10, 10), (one, 2, 10)):
        line.post("progress", "bot", "questions", done, total)
        line.ask("flush")
    assert shown == [("bot", 3, 10), ("bot", 8, 20), ("bot", 15, 20), ("bot", 17, 30)]


def test_slots_and_pauses_hold_for_all_workers() -> None:
    office = open_office()
    makers = [office.hire(name).pace for name in ("one", "two", "three")]
    under_way, most, lock = 0, 0, threading.Lock()

    def work(place: int) -> None:
        nonlocal under_way, most
        maker = makers[place]
        assert maker is not None
        pace = maker("endpoint")(Clock(), None, None, 2)
        for _ in range(4):
            with pace.take(1):
                with lock:
                    under_way += 1
                    most = max(most, under_way)
                time.sleep(0.01)
                with lock:
                    under_way -= 1
                pace.record(pace.wait(1), refused=False)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == 2


def test_a_refusal_is_told_and_makes_all_workers_wait() -> None:
    office = open_office()
    one, two = (office.hire(name).pace for name in ("one", "two"))
    assert one is not None and two is not None
    first, second = one("endpoint")(Clock(), None, None, 4), two("endpoint")(Clock(), None, None, 4)
    with first.take(1):
        begun = first.wait(1)
        first.record(begun, refused=True, wait=0.3)
    assert first.throttle.has_refused_for(0.0, first._clock.now())
    with second.take(1):
        assert second.wait(1) - begun >= 0.3


def test_a_turn_that_no_call_uses_frees_its_slot() -> None:
    office = open_office()
    maker = office.hire("one").pace
    assert maker is not None
    pace = maker("endpoint")(Clock(), None, None, 1)
    for _ in range(3):
        with pytest.raises(LimitError), pace.take(1):
            raise LimitError("no call may be made")


def test_a_turn_that_nobody_waits_for_any_more_is_given_back() -> None:
    office = open_office()
    makers = [office.hire(name).pace for name in ("one", "two")]
    clocks = [Clock(), Clock()]
    first, second = (
        maker("endpoint")(clock, None, None, 1) for maker, clock in zip(makers, clocks, strict=True) if maker
    )
    with first.take(1):
        gave_up = threading.Event()

        def wait_in_vain() -> None:
            with pytest.raises(StoppedError), second.take(1):
                pass
            gave_up.set()

        threading.Thread(target=wait_in_vain, daemon=True).start()
        time.sleep(0.05)
        clocks[1].stop()
        assert gave_up.wait(5)
    with first.take(1):  # the slot that the second one got too late is free again
        pass


def test_what_the_owner_cannot_do_is_an_error_for_who_asked(tmp_path: Path) -> None:
    office = open_office()
    worker = office.hire("one")
    with pytest.raises(FileNotFoundError):
        worker.fetch(tmp_path / "absent")
    (tmp_path / "file").write_bytes(b"content")
    assert [worker.fetch(tmp_path / "file") for _ in range(2)] == [b"content"] * 2
    assert office.files == [tmp_path / "absent", tmp_path / "file"]  # read once, however often it is fetched


def test_messages_of_many_threads_travel_together() -> None:
    office = open_office()
    line = office.open_line("one")
    threads = [threading.Thread(target=line.ask, args=("find", "model", [KEY])) for _ in range(64)]
    for _ in range(200):
        line.post("count_guess")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(office.sent) == 264
    assert max(office.sent) > 50
    assert office.shared.budget.guessed == 200
