"""Calls to chat models that fail, are refused, or are retried."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rageval_spec.data.chat import CallError
from rageval_spec.endpoints.calls import Batches
from rageval_spec.endpoints.endpoint import Endpoint
from rageval_spec.endpoints.tries import Limits, Tries
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from tests.models.chat_endpoint import ChatServer, QuickClock, refusal, say_yes
from tests.models.chatting import Serve, always, build, clock, fails, in_turn, no_proxies, question, serve
from tests.models.endpoint import Answer, Hangup, Trickle

__all__ = ["clock", "no_proxies", "serve"]


# Faults


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_temporary_refusal_is_retried_soon(serve: Serve, clock: QuickClock, status: int) -> None:
    server = serve(in_turn(Answer({}, status)))
    assert build(server.url).ask(question()).text == "yes"
    assert len(server.calls) == 2
    assert len(clock.slept) == 1
    assert 0.1 <= clock.slept[0] <= 0.2


@pytest.mark.parametrize(
    "answer", [Hangup(), Hangup(20), Answer(b"<html>Bad gateway"), Answer({"error": "overloaded"})]
)
def test_a_broken_reply_is_retried(serve: Serve, answer: Answer) -> None:
    server = serve(in_turn(answer))
    assert build(server.url).ask(question()).text == "yes"


def test_a_slow_reply_is_retried(serve: Serve) -> None:
    server = serve(in_turn(Trickle({})))
    assert build(server.url, timeout=0.3).ask(question()).text == "yes"


def test_a_call_fails_after_its_last_retry(serve: Serve) -> None:
    server = serve(always(Answer({"error": {"message": "overloaded"}}, 503)))
    message = fails(build(server.url, retries=3))
    assert message == (
        f"models.judge: {server.url}/v1/chat/completions answered 503 Service Unavailable, after 4 tries: "
        '{"error": {"message": "overloaded"}}'
    )
    assert len(server.calls) == 4


@pytest.mark.parametrize(("keys", "patience"), [({}, 75), ({"patience": 20}, 20)])
def test_if_all_calls_are_refused_they_are_retried_until_patience_ends(
    serve: Serve, clock: QuickClock, keys: dict[str, Any], patience: float
) -> None:
    server = serve(always(Answer({}, 429)))
    model, began = build(server.url, **keys), clock.now()
    with pytest.raises(CallError) as caught:
        model.ask(question())
    assert patience <= clock.now() - began < patience + 20
    assert not caught.value.is_temporary  # other words would be refused, too
    assert len(server.calls) < 20


def test_endlessly_refused_questions_fail_together(serve: Serve, clock: QuickClock) -> None:
    server = serve(always(Answer({}, 429)))
    model, began = build(server.url, retries=2, patience=60), clock.now()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: fails(model, question(f"{number}?")), range(4)))
    assert clock.now() - began < 150
    assert len(server.calls) < 30


def test_if_only_one_call_is_refused_it_has_the_usual_number_of_retries(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return Answer({}, 429) if body["messages"][-1]["content"] == "stuck" else say_yes(number, body)

    server = serve(script)
    model = build(server.url, retries=3)
    model.ask(question("fine"))
    fails(model, question("stuck"))
    assert len(server.calls) == 1 + 4


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"x_ratelimit_reset_requests": "1m2.5s"}, 62.5),
        ({"x_ratelimit_reset_requests": "300ms"}, 0.3),
        ({"x_ratelimit_reset_requests": "9s", "x_ratelimit_reset_tokens": "2s"}, 2.0),
        (
            {
                "x_ratelimit_reset_requests": "9s", "x_ratelimit_remaining_requests": "0",
                "x_ratelimit_reset_tokens": "2s", "x_ratelimit_remaining_tokens": "17",
            },
            9.0,
        ),
        ({"Retry_After": "3", "x_ratelimit_reset_requests": "60s"}, 3.0),
    ],
)  # fmt: skip
def test_all_calls_wait_as_long_as_the_endpoint_asks(
    serve: Serve, clock: QuickClock, headers: dict[str, str], seconds: float
) -> None:
    server = serve(in_turn(Answer({}, 429, **headers)))
    model = build(server.url)
    model.ask(question())
    assert seconds <= clock.slept[0] <= 2 * seconds
    assert len(server.calls) == 2


def test_if_the_endpoint_asks_to_wait_other_threads_wait_too(serve: Serve, clock: QuickClock) -> None:
    refused = threading.Event()

    def script(number: int, body: dict[str, Any]) -> Answer:
        if number == 0:
            return Answer({}, 429, Retry_After="40")
        return say_yes(number, body)

    server = serve(script)
    model = build(server.url)
    times: list[float] = []
    plain = clock.sleep

    def ask() -> None:
        model.ask(question("Other?"))
        times.append(clock.now())

    def sleep(seconds: float) -> None:
        if not refused.is_set():
            refused.set()
            other = threading.Thread(target=ask)
            other.start()
            other.join(10)
        plain(seconds)

    clock.sleep = sleep  # type: ignore[method-assign]
    model.ask(question())
    assert times[0] >= 1040


def test_a_refusal_without_a_wait_does_not_stop_other_threads(serve: Serve, clock: QuickClock) -> None:
    server = serve(lambda number, body: Answer({}, 429) if number == 0 else say_yes(number, body))
    model = build(server.url, concurrency=2)
    others: list[str] = []
    plain = clock.sleep

    def sleep(seconds: float) -> None:
        if not others:
            others.append("")
            others[:] = [model.ask(question(f"Other {n}?")).text for n in range(5)]  # while the first waits
        plain(seconds)

    clock.sleep = sleep  # type: ignore[method-assign]
    assert model.ask(question()).text == "yes"
    assert others == ["yes"] * 5
    assert len(clock.slept) == 1


def test_an_endpoint_that_asks_to_wait_too_long_fails(serve: Serve) -> None:
    server = serve(always(Answer({}, 429, Retry_After="86400")))
    assert "asks to wait 86400 s, which is too long" in fails(build(server.url))
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (refusal("Incorrect API key", 401), "answered 401 Unauthorized (is the key right?)"),
        (refusal("The model does not exist", 404), "answered 404 Not Found (are base_url and model right?)"),
        (
            refusal("You exceeded your current quota", 429, code="insufficient_quota"),
            "the account has no credit left, so a retry would not help",
        ),
        (
            refusal("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
            "the request is too long for the model: use fewer or shorter contexts",
        ),
        (refusal("Your messages are bad"), "answered 400 Bad Request: "),
        (
            Answer({}, 302, Location="https://login.invalid/x?token=1"),
            "to https://login.invalid/x: write that as base_url",
        ),
    ],
)
def test_a_permanent_refusal_is_not_retried_and_says_what_to_do(serve: Serve, answer: Answer, advice: str) -> None:
    server = serve(always(answer))
    message = fails(build(server.url))
    assert message.startswith(f"models.judge: {server.url}/v1/chat/completions ")
    assert advice in message
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"<html>Sign in</html>", "something that is not JSON, after 3 tries: <html>Sign in</html>"),
        ({"error": {"message": "out of memory"}}, "with no list 'choices', after 3 tries"),
        ({"choices": []}, "with no list 'choices'"),
        ({"choices": [{"index": 0}]}, "with a choice that has no message"),
        (b"[" * 100_000, "something that is not JSON"),
    ],
)
def test_a_senseless_reply_fails_after_few_tries(serve: Serve, content: Any, complaint: str) -> None:
    server = serve(always(Answer(content)))
    message = fails(build(server.url))
    assert f"answered 200 {'with' if 'JSON' in complaint else 'but'}".replace("200 but", "200, but") in message
    assert complaint in message
    assert len(server.calls) == 3


def test_a_refused_connection_is_retried_and_reported() -> None:
    server = ChatServer()
    server.close()
    with pytest.raises(CallError, match=r"refuses connections \(is it running\?\), after 3 tries") as caught:
        build(server.url, retries=2).ask(question())
    assert not caught.value.is_temporary


@pytest.mark.parametrize(
    ("answer", "is_temporary"),
    [(Answer({}, 500), True), (Answer({}, 429), True), (Hangup(), True), (Answer(b"<html>"), True),
     (Answer({}, 401), False), (Answer({}, 404), False), (Answer({}, 400), False)],
)  # fmt: skip
def test_a_failure_says_whether_other_words_can_help(serve: Serve, answer: Answer, is_temporary: bool) -> None:
    with pytest.raises(CallError) as caught:
        build(serve(always(answer)).url, retries=0).ask(question())
    assert caught.value.is_temporary is is_temporary
    assert caught.value.is_lasting is not is_temporary


def test_after_ten_failures_in_a_row_calls_stop_until_one_succeeds(serve: Serve, clock: QuickClock) -> None:
    is_broken = True
    server = serve(lambda number, body: Answer({}, 500) if is_broken else say_yes(number, body))
    model = build(server.url, retries=0)
    for number in range(10):
        assert "answered 500" in fails(model, question(f"{number}?"))
    message = fails(model, question("Once more?"))
    assert message.startswith("models.judge: not asked after 10 failed calls in a row; the last failure: http://")
    with pytest.raises(CallError) as caught:
        model.ask(question("And again?"))
    assert not caught.value.is_temporary
    assert message.count("models.judge") == 1
    assert len(server.calls) == 10
    is_broken = False
    clock.time += 60
    for number in range(3):
        assert model.ask(question(f"Again {number}?")).text == "yes"


def test_calls_that_are_not_made_do_not_count(serve: Serve) -> None:
    budget = Budget()
    model = build(serve(always(Answer({}, 500))).url, Context("judge", budget=budget), retries=0)
    for number in range(15):
        fails(model, question(f"{number}?"))
    assert budget.calls == 10


def test_wrong_requests_do_not_open_the_breaker(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return refusal("prompt is too long") if "long" in body["messages"][-1]["content"] else say_yes(number, body)

    model = build(serve(script).url)
    for number in range(20):
        fails(model, question(f"long {number}"))
    assert model.ask(question("short")).text == "yes"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running = ChatServer(lambda number, body: Answer(body))
    yield running
    running.close()


def build_batches(server: ChatServer, retries: int = 0) -> Batches:
    endpoint = Endpoint(server.url, "models.remote", headers={})
    return Batches(endpoint, Tries(Limits(4, retries), QuickClock()))


def test_every_task_is_posted_and_its_reply_read(server: ChatServer) -> None:
    batches = build_batches(server)
    found = batches.post_all(range(20), lambda n: batches.post({"n": n}, lambda content: content["n"] + 1), 4)
    assert sorted(found) == list(range(1, 21))


def test_after_a_failure_calls_under_way_finish_and_no_other_begins(server: ChatServer) -> None:
    refused = threading.Event()

    def script(number: int, body: dict[str, int]) -> Answer:
        if body["n"] == 0:
            refused.wait(10)
            return Answer(body)
        refused.set()
        return Answer({"error": "no"}, 400)

    server.chat = script
    batches, found = build_batches(server), list[int]()
    with pytest.raises(RagevalError, match="answered 400"):
        for value in batches.post_all(range(500), lambda n: batches.post({"n": n}, lambda content: content["n"]), 2):
            found.append(value)
    assert found in ([0], [])
    assert len(server.calls) < 100


def test_the_error_says_where_and_after_how_many_tries(server: ChatServer) -> None:
    server.chat = lambda number, body: Answer({}, 503)
    batches = build_batches(server, retries=2)
    with pytest.raises(RagevalError, match=r"^models\.remote: http://.* answered 503 .*, after 3 tries"):
        list(batches.post_all([1], lambda n: batches.post({}, lambda content: content), 1))
