from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.chat import CallError, ChatReply, InterruptedCallError, LimitError
from rageval_spec.endpoints.chat_questions import ChatQuestion, ask
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.models import chat
from rageval_spec.models.chat import Chat, ChatNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.secrets import Secret
from rageval_spec.store.replies import FileAnswers
from rageval_spec.store.store import MemoryAnswers
from tests.models import chatting
from tests.models.chat_endpoint import QuickClock, completion, say_yes
from tests.models.chatting import KEY, SCHEMA, Serve, always, build, clock, fails, in_turn, no_proxies, question, serve
from tests.models.endpoint import Answer

__all__ = ["clock", "no_proxies", "serve"]


# One call a question


@pytest.fixture
def followers(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """A semaphore that each thread releases when it waits for another thread's call."""
    semaphore = threading.Semaphore(0)
    plain = chat._follow

    def follow(call: Future[ChatReply]) -> ChatReply:
        semaphore.release()
        return plain(call)

    monkeypatch.setattr(chat, "_follow", follow)
    return semaphore


def test_equal_questions_under_way_are_one_call(serve: Serve, followers: threading.Semaphore) -> None:
    asked, release = threading.Event(), threading.Event()

    def script(number: int, body: dict[str, Any]) -> Answer:
        asked.set()
        release.wait(10)
        return say_yes(number, body)

    server = serve(script)
    seen: list[tuple[int, int]] = []
    context = Context(
        "judge", answers=MemoryAnswers(), progress=lambda done, total, unit=None: seen.append((done, total))
    )
    model = build(server.url, context)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(model.ask, question())
        assert asked.wait(10)
        others = [pool.submit(model.ask, question()) for _ in range(8)]
        assert all(followers.acquire(timeout=10) for _ in others)
        release.set()
        replies = [first.result(), *(other.result() for other in others)]
    assert len(server.calls) == 1
    assert {reply.text for reply in replies} == {"yes"}
    assert [reply.reused for reply in replies] == [False] + [True] * 8
    assert seen == [(0, 1), (1, 1)]


def test_a_thread_that_waits_for_an_equal_question_fails_with_it(serve: Serve, followers: threading.Semaphore) -> None:
    asked, release = threading.Event(), threading.Event()

    def script(number: int, body: dict[str, Any]) -> Answer:
        asked.set()
        release.wait(10)
        return Answer({}, 401)

    server = serve(script)
    model = build(server.url)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(model.ask, question())]
        assert asked.wait(10)
        calls.append(pool.submit(model.ask, question()))
        assert followers.acquire(timeout=10)
        release.set()
        errors = [call.exception() for call in calls]
    assert str(errors[0]) == str(errors[1])
    assert [isinstance(error, CallError) and error.is_temporary for error in errors] == [False, False]
    assert errors[0] is not errors[1]
    assert len(server.calls) == 1


def test_a_failed_question_can_be_asked_again(serve: Serve) -> None:
    server = serve(in_turn(Answer({}, 401)))
    model = build(server.url)
    fails(model)
    assert model.ask(question()).text == "yes"


def test_calls_at_once_never_exceed_the_limit(serve: Serve) -> None:
    lock = threading.Lock()
    together = threading.Barrier(3, timeout=10)
    under_way, most = 0, 0

    def script(number: int, body: dict[str, Any]) -> Answer:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        if number < 3:
            together.wait()  # breaks where fewer than three calls are made at once
        with lock:
            under_way -= 1
        return say_yes(number, body)

    server = serve(script)
    model = build(server.url, Context("judge", concurrency=16), concurrency=3)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: model.ask(question(f"{number}?")), range(60)))
    assert most == 3
    assert server.connections <= 3


def test_the_specs_concurrency_is_the_default(serve: Serve) -> None:
    server = serve()
    model = build(server.url, Context("judge", concurrency=2))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: model.ask(question(f"{number}?")), range(30)))
    assert server.connections <= 2


def test_requests_per_minute_limit_all_threads_together(serve: Serve, clock: QuickClock) -> None:
    model = build(serve().url, requests_per_minute=60)
    began = clock.now()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: model.ask(question(f"{number}?")), range(10)))
    assert clock.now() - began >= 9


def test_tokens_per_minute_count_what_was_used(serve: Serve, clock: QuickClock) -> None:
    model = build(
        serve().url, tokens_per_minute=600, max_tokens=9990
    )  # expects tokens for ten minutes, uses those of one second
    began = clock.now()
    for number in range(4):
        model.ask(question(f"{number}?"))
    assert clock.now() - began == pytest.approx(3)


# What is kept


def test_a_second_model_object_uses_stored_replies(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    answers = FileAnswers(tmp_path, lambda: None)
    requests = [question(f"{number}?", schema=SCHEMA, repeat=number % 2) for number in range(20)]
    first = [build(server.url, Context("judge", answers=answers)).ask(request) for request in requests]
    answers.close()

    again = FileAnswers(tmp_path, lambda: None)
    budget = Budget(max_calls=0)
    model = build(server.url, Context("other name", answers=again, budget=budget), api_key=KEY, retries=0)
    assert all(model.find(request) is not None for request in requests)
    second = [model.ask(request) for request in requests]
    again.close()
    assert len(server.calls) == 20
    assert [reply.text for reply in second] == [reply.text for reply in first]
    assert all(reply.reused for reply in second)
    assert not any(reply.reused for reply in first)


def test_find_makes_no_call() -> None:
    assert build("http://127.0.0.1:9").find(question()) is None


def test_a_reply_is_stored_before_it_is_returned(serve: Serve) -> None:
    class Failing(MemoryAnswers):
        def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
            raise RagevalError("store: the disk is full")

    budget = Budget()
    model = build(serve().url, Context("judge", answers=Failing(), budget=budget), price={"input": 1e6, "output": 1e6})
    with pytest.raises(RagevalError, match="the disk is full"):
        model.ask(question())
    assert budget.cost == pytest.approx(10)


def test_stored_replies_contain_no_time(serve: Serve) -> None:
    kept: list[bytes] = []

    class Watching(MemoryAnswers):
        def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
            kept.extend(answers.values())

    build(serve().url, Context("judge", answers=Watching())).ask(question())
    assert kept == [b'{"text":"yes","input_tokens":7,"output_tokens":3,"finish":"stop"}\n#bd2bcf47']


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'"yes"', b"{}", b'{"text":"a","choices":[[1]]}'])
def test_a_damaged_answer_is_asked_for_again(serve: Serve, damaged: bytes) -> None:
    server = serve()
    answers = MemoryAnswers()
    model = build(server.url, Context("judge", answers=answers))
    answers.keep(model.key, {question().digest: damaged})
    assert model.find(question()) is None
    assert model.ask(question()).text == "yes"


def test_a_fresh_reply_replaces_the_stored_one(serve: Serve) -> None:
    server = serve(lambda number, body: Answer(completion(f"reply {number}")))
    model = build(server.url)
    assert model.ask(question()).text == "reply 0"
    assert model.ask(question(), fresh=True) == ChatReply("reply 1", 7, 3, "stop")
    assert model.ask(question()) == ChatReply("reply 1", 7, 3, "stop", reused=True)


def test_a_reply_to_other_words_is_found_after_a_failed_call_and_in_later_evaluations(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(in_turn(Answer({}, 500), Answer(completion("certainly"))))
    asked = ChatQuestion(question(), lambda text, _: text, "one word.")
    for _ in range(2):
        answers = FileAnswers(tmp_path, lambda: None)
        model = build(server.url, Context("llm", answers=answers), retries=0)
        found = [ask(model, asked, Context("judge")) for _ in range(2)]
        answers.close()
        assert found == ["certainly", "certainly"]
        assert model.may_have_failed
    assert len(server.calls) == 2


def test_a_new_model_without_failed_calls_searches_for_no_other_words(serve: Serve) -> None:
    searched: list[bytes] = []

    class Watching(MemoryAnswers):
        def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
            searched.extend(questions)
            return super().find(model, questions)

    model = build(serve().url, Context("llm", answers=Watching()))
    for number in range(2):
        asked = question(f"{number}?")
        assert ask(model, ChatQuestion(asked, lambda text, _: text, "one word."), Context("judge")) == "yes"
        assert {*searched} == {asked.digest}
        searched.clear()
    assert not model.may_have_failed


# What it costs


def test_calls_and_costs_are_counted(serve: Serve) -> None:
    budget = Budget(max_cost=1.0)
    model = build(
        serve().url, Context("judge", answers=MemoryAnswers(), budget=budget), price={"input": 2, "output": 8}
    )
    for number in range(3):
        model.ask(question(f"{number}?"))
    model.ask(question("0?"))
    assert budget.calls == 3
    assert budget.cost == pytest.approx(3 * (7 * 2 + 3 * 8) / 1e6)


def test_a_failed_call_costs_nothing_but_counts(serve: Serve) -> None:
    budget = Budget()
    price = {"input": 2, "output": 8}
    fails(build(serve(always(Answer({}, 401))).url, Context("judge", budget=budget), price=price))
    assert (budget.calls, budget.cost, budget.errors) == (1, 0.0, 0)


def test_all_tries_of_a_question_are_one_call(serve: Serve) -> None:
    budget = Budget()
    build(serve(in_turn(Answer({}, 500), Answer({}, 429))).url, Context("judge", budget=budget)).ask(question())
    assert budget.calls == 1


def test_the_limit_on_calls_counts_tries(serve: Serve) -> None:
    server = serve(always(Answer({}, 500)))
    model = build(server.url, Context("judge", budget=Budget(max_calls=4)))
    for text in ("0?", "1?"):
        with pytest.raises(LimitError, match="4 of 4 calls to models made"):
            model.ask(question(text))
    assert len(server.calls) == 4


def test_the_limit_on_calls_stops_only_questions_without_a_stored_reply(serve: Serve) -> None:
    server = serve()
    model = build(server.url, Context("judge", answers=MemoryAnswers(), budget=Budget(max_calls=2)))
    model.ask(question("0?"))
    model.ask(question("1?"))
    with pytest.raises(LimitError, match="2 of 2 calls to models made"):
        model.ask(question("2?"))
    assert model.ask(question("1?")).reused
    assert len(server.calls) == 2


def test_the_limit_on_cost_counts_the_most_that_a_call_can_cost(serve: Serve) -> None:
    server = serve()
    context = Context("judge", answers=MemoryAnswers(), budget=Budget(max_cost=0.001))
    model = build(server.url, context, price={"input": 1, "output": 100})
    model.ask(question("0?", max_tokens=5))
    with pytest.raises(LimitError, match="max_cost"):
        model.ask(question("1?"))  # its reply may have 500 tokens
    assert len(server.calls) == 1


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_calls_under_way_do_not_exhaust_the_limit_on_cost_and_can_be_retried(serve: Serve, concurrency: int) -> None:
    """Calls that wait for room must not keep slots from calls that need a retry."""
    failed: set[str] = set()

    def fail_once(number: int, body: dict[str, Any]) -> Answer:
        text = body["messages"][-1]["content"]
        if text in failed:
            return say_yes(number, body)
        failed.add(text)
        return Answer({}, 500)

    budget = Budget(max_cost=0.06)
    context = Context("judge", answers=MemoryAnswers(), budget=budget)
    model = build(serve(fail_once).url, context, price={"input": 1, "output": 100}, concurrency=concurrency)
    with ThreadPoolExecutor(16) as pool:  # each may cost 0.05, and costs 0.0003
        replies = list(pool.map(lambda number: model.ask(question(f"{number}?")), range(24)))
    assert [reply.text for reply in replies] == ["yes"] * 24
    assert (budget.calls, budget.retries) == (24, 24)
    assert budget.cost == pytest.approx(24 * (7 + 3 * 100) / 1e6)


def test_stop_ends_calls_that_wait_for_room(serve: Serve) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer_late(number: int, body: dict[str, Any]) -> Answer:
        asked.set()
        go_on.wait(10)
        return say_yes(number, body)

    context = Context("judge", budget=Budget(max_cost=0.06))
    model = build(serve(answer_late).url, context, price={"input": 1, "output": 100})
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(model.ask, question(f"{number}?")) for number in range(4)]
        assert asked.wait(10)
        model.stop()
        errors = [future.exception(10) for future in waiting]
        go_on.set()
    assert all(isinstance(error, InterruptedCallError) for error in errors)


def test_a_limit_on_cost_needs_a_price() -> None:
    context = Context("judge", budget=Budget(max_cost=2.5))
    unknown, known = (
        build("http://127.0.0.1:9", context),
        build("http://127.0.0.1:9", context, price={"input": 0, "output": 0}),
    )
    assert "a limit on cost" in (unknown.check() or "")
    assert "price: {input: " in (unknown.check() or "")
    assert known.check() is None
    assert [model.price for model in (known, unknown)] == [(0, 0), None]
    assert build("http://127.0.0.1:9").check() is None


def test_the_dated_list_knows_the_providers_own_models() -> None:
    node = ChatNode.model_validate({"use": "chat", "model": "gpt-4o-mini"})
    model = Chat(node, Context("judge", budget=Budget(max_cost=1)))
    assert model.price == (0.15, 0.6)
    assert model.check() is None


# The end


def test_stop_ends_calls_under_way_and_waiting_calls(serve: Serve) -> None:
    asked, release = threading.Event(), threading.Event()

    def script(number: int, body: dict[str, Any]) -> Answer:
        asked.set()
        release.wait(20)
        return say_yes(number, body)

    model = build(serve(script).url, concurrency=1)
    messages: list[str] = []

    def ask(text: str) -> None:
        with pytest.raises(InterruptedCallError) as caught:
            model.ask(question(text))
        messages.append(str(caught.value))

    threads = [threading.Thread(target=ask, args=(f"{number}?",)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert asked.wait(10)
    model.stop()
    for thread in threads:
        thread.join(10)
    release.set()
    assert len(messages) == 3
    assert all(message.endswith("was interrupted before it replied") for message in messages)
    assert model.context.budget.describe() == "made 1 call; 1 call interrupted before a reply came"


# The key of what is kept


@pytest.mark.parametrize(
    "same",
    [
        {"api_key": KEY}, {"headers": {}}, {"concurrency": 9}, {"timeout": 3}, {"retries": 0},
        {"price": {"input": 1, "output": 2}}, {"requests_per_minute": 5}, {"tokens_per_minute": 5},
        {"url": "http://host/v1"}, {"url": "http://HOST/"}, {"api_version": "2025-01-01"},
    ],
)  # fmt: skip
def test_credentials_and_ways_to_call_are_not_part_of_the_key(same: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **same}).key == build("http://host").key


@pytest.mark.parametrize(
    "other",
    [
        {"model": "large"}, {"url": "http://other"}, {"temperature": 1}, {"seed": 1}, {"structured": "none"},
        {"extra": {"top_p": 0.5}}, {"dialect": "anthropic"}, {"max_tokens": 9}, {"repeat_temperature": 1},
    ],
)  # fmt: skip
def test_settings_that_influence_replies_are_part_of_the_key(other: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **other}).key != build("http://host").key


def test_headers_are_part_of_the_key_because_gateways_route_by_them_but_not_the_values_of_secrets() -> None:
    chatting.check_keys_of_headers(partial(build, "http://host"))


def test_results_record_the_model_and_its_url() -> None:
    described = build("https://host/v1/chat/completions?token=hidden", api_key=KEY).describe()
    assert described == {"use": "chat", "model": "tiny", "url": "https://host/v1/chat/completions"}


# Secrets


@pytest.mark.parametrize("dialect", ["openai", "azure", "anthropic"])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_key_that_a_reply_repeats_is_not_shown(serve: Serve, status: int, dialect: str) -> None:
    padding = "x" * 190
    server = serve(always(Answer({"error": f"wrong key {KEY}", "more": f"{padding} {KEY}"}, status)))
    model = build(server.url, api_key=KEY, retries=0, dialect=dialect)
    with pytest.raises(CallError) as caught:
        model.ask(question())
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in str(chain)
        assert KEY[:8] not in str(chain)
        chain = chain.__cause__ or chain.__context__
    assert "wrong key ***" in str(caught.value)


def test_a_secret_header_that_a_reply_repeats_is_masked(serve: Serve) -> None:
    server = serve(always(Answer({"error": "unknown token abcd1234"}, 403)))
    message = fails(build(server.url, headers={"Proxy-Token": Secret("Token abcd1234", "Token ${secret:T}")}))
    assert "abcd1234" not in message
    assert "unknown token ***" in message


def test_the_message_of_the_open_breaker_contains_no_secret(serve: Serve) -> None:
    model = build(serve(always(Answer({"error": KEY}, 401))).url, api_key=KEY)
    messages = [fails(model, question(f"{number}?")) for number in range(12)]
    assert "not asked" in messages[-1]
    assert not any(KEY in message for message in messages)


def test_a_key_that_does_not_fit_into_a_header_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="'Authorization'") as caught:
        build("http://127.0.0.1:9", api_key=f"{KEY}\nInjected: 1").prepare()
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://me:hidden@host", "http://host/a b"])
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        build(url)


def test_many_threads_find_stored_replies_at_once(serve: Serve) -> None:
    server = serve(lambda number, body: Answer(completion(body["messages"][-1]["content"].upper())))
    model = build(server.url)

    def ask(number: int) -> str:
        return model.ask(question(f"question {number % 25}")).text

    with ThreadPoolExecutor(16) as pool:
        texts: Sequence[str] = list(pool.map(ask, range(400)))
    assert texts == [f"QUESTION {number % 25}" for number in range(400)]
    assert len(server.calls) == 25
