from __future__ import annotations

import base64
import math
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rageval_spec.endpoints import pacing
from rageval_spec.endpoints.pacing import Clock, StoppedError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.models.http import HttpModel, HttpModelNode
from rageval_spec.plugin import Context, NoAnswers, Role
from rageval_spec.plugin.secrets import Secret
from rageval_spec.spec import load
from tests.models.chat_endpoint import QuickClock
from tests.models.chatting import check_keys_of_headers, clock, no_proxies
from tests.models.endpoint import TEXTS, Answer, Hangup, Script, Server, Trickle, answer_well, embeddings, vector_of

KEY = "sk-very-secret-4711"


__all__ = ["clock", "no_proxies"]

Serve = Callable[[Script], Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


class Kept(NoAnswers):
    """A store in memory."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, bytes], bytes] = {}

    def find(self, model: str, questions: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return {q: self.answers[model, q] for q in questions if (model, q) in self.answers}

    def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
        self.answers.update({(model, question): answer for question, answer in answers.items()})


def build(url: str, context: Context | None = None, **keys: Any) -> HttpModel:
    node = HttpModelNode.model_validate({"use": "http", "base_url": url, "model": "tiny", **keys})
    return HttpModel(node, context or Context("remote"))


def fails(model: HttpModel, texts: Sequence[str] = TEXTS) -> str:
    """The message of the error that `embed` raises."""
    with pytest.raises(RagevalError) as caught:
        model.embed(texts)
    return str(caught.value)


# What is sent, and what comes of it


def test_vectors_are_in_the_order_of_the_texts_and_equal_texts_are_sent_once(serve: Serve) -> None:
    server = serve(answer_well)
    found = build(server.url, batch=2).embed([*TEXTS, TEXTS[0]])
    assert_array_equal(found.vectors, np.array([vector_of(text) for text in [*TEXTS, TEXTS[0]]], np.float32))
    assert found.vectors.dtype == np.float32
    assert not found.truncated.any()
    assert sorted(text for call in server.calls for text in call["input"]) == sorted(TEXTS)
    assert sorted(len(call["input"]) for call in server.calls) == [1, 2]


def test_a_call_sends_only_the_necessary_keys(serve: Serve) -> None:
    server = serve(answer_well)
    build(server.url).embed(TEXTS)
    assert server.calls == [{"model": "tiny", "input": TEXTS}]
    assert "authorization" not in {name.lower() for name in server.headers[0]}


def test_keys_of_the_node_are_sent(serve: Serve) -> None:
    server = serve(answer_well)
    model = build(server.url, api_key=KEY + "\n", headers={"X-Team": "search"}, dimensions=3, encoding_format="base64")
    model.embed(TEXTS)
    assert server.calls == [{"model": "tiny", "input": TEXTS, "dimensions": 3, "encoding_format": "base64"}]
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert (sent["authorization"], sent["x-team"]) == (f"Bearer {KEY}", "search")


@pytest.mark.parametrize(("role", "prefix"), [("query", "query: "), ("document", "passage: ")])
def test_each_role_has_its_prefix(serve: Serve, role: Role, prefix: str) -> None:
    server = serve(answer_well)
    build(server.url, query_prefix="query: ", document_prefix="passage: ").embed(["cat"], role)
    assert server.calls[0]["input"] == [prefix + "cat"]


def test_an_empty_text_is_sent_as_a_space(serve: Serve) -> None:
    server = serve(answer_well)
    found = build(server.url).embed(["", "cat"])
    assert server.calls[0]["input"] == [" ", "cat"]
    assert not found.truncated.any()


def test_any_text_arrives_unchanged(serve: Serve) -> None:
    server = serve(answer_well)
    texts = ['"quoted"\n\\', "猫 🐈", "\x00", "lone \ud800"]
    build(server.url).embed(texts)
    assert server.calls[0]["input"] == texts


def test_long_texts_are_cut_and_flagged_if_the_node_says_so(serve: Serve) -> None:
    server = serve(answer_well)
    found = build(server.url, max_characters=5, document_prefix="p ").embed(["cat", "cattle"])
    assert server.calls[0]["input"] == ["p cat"]
    assert found.truncated.tolist() == [False, True]


def test_no_texts_make_no_call(serve: Serve) -> None:
    server = serve(answer_well)
    assert len(build(server.url).embed([]).vectors) == 0
    assert server.calls == []


def test_vectors_can_be_scaled_to_length_1(serve: Serve) -> None:
    zero = Answer({"data": [{"index": 0, "embedding": [3, 4]}, {"index": 1, "embedding": [0, 0]}]})
    found = build(serve(lambda number, texts: zero).url, normalize=True).embed(["a", "b"])
    assert_allclose(found.vectors, np.array([[0.6, 0.8], [0.0, 0.0]]), rtol=1e-7)


@pytest.mark.parametrize("asked", ["float", "base64"])
def test_base64_is_read_even_if_it_was_not_asked_for(serve: Serve, asked: str) -> None:
    def script(number: int, texts: list[str]) -> Answer:
        content = embeddings(texts)
        for item in content["data"]:
            item["embedding"] = base64.b64encode(struct.pack("<3f", *item["embedding"])).decode()
        return Answer(content)

    found = build(serve(script).url, encoding_format=asked).embed(TEXTS)
    assert_array_equal(found.vectors, np.array([vector_of(text) for text in TEXTS], np.float32))


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("", "/v1/embeddings"),
        ("/", "/v1/embeddings"),
        ("/v1", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("/api", "/api/v1/embeddings"),
        ("/v1beta/openai", "/v1beta/openai/embeddings"),
        ("/deployments/x/embeddings?api-version=2024", "/deployments/x/embeddings?api-version=2024"),
    ],
)
def test_base_url_can_have_or_lack_a_version(serve: Serve, base_url: str, path: str) -> None:
    server = serve(answer_well)
    build(server.url + base_url).embed(["cat"])
    assert server.paths == [path]


def test_connections_are_reused_and_calls_run_in_parallel(serve: Serve) -> None:
    together = threading.Barrier(3, timeout=10)

    def script(number: int, texts: list[str]) -> Answer:
        if number < 3:
            together.wait()  # breaks where fewer than three calls are made at once
        return Answer(embeddings(texts))

    server = serve(script)
    found = build(server.url, batch=1, concurrency=3).embed([f"text {i}" for i in range(40)])
    assert len(found.vectors) == 40
    assert server.connections == 3


def test_an_idle_connection_that_the_server_closed_is_not_a_failed_try(serve: Serve) -> None:
    class Closing(Answer):
        def write(self, handler: BaseHTTPRequestHandler) -> None:
            super().write(handler)
            handler.close_connection = True  # without saying so

    server = serve(lambda number, texts: Closing(embeddings(texts)))
    found = build(server.url, batch=1, concurrency=1, retries=0).embed(TEXTS)
    assert len(found.vectors) == 3
    assert server.connections == 3


def test_the_proxy_of_the_environment_is_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(answer_well)
    monkeypatch.setenv("http_proxy", proxy.url.replace("://", "://me:p%40ss@"))
    build("http://embeddings.invalid:81").embed(["cat"])
    assert proxy.paths == ["http://embeddings.invalid:81/v1/embeddings"]
    sent = {name.lower(): value for name, value in proxy.headers[0].items()}
    assert sent["host"] == "embeddings.invalid:81"
    assert base64.b64decode(sent["proxy-authorization"].removeprefix("Basic ")) == b"me:p@ss"


def test_hosts_without_a_proxy_are_called_directly(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(answer_well)
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    build(server.url).embed(["cat"])
    assert server.paths == ["/v1/embeddings"]


def test_the_message_about_another_kind_of_proxy_hides_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://me:hidden@proxy.invalid:1")
    message = fails(build("http://embeddings.invalid"))
    assert "socks5://proxy.invalid:1" in message
    assert "hidden" not in message


# Replies are checked


def test_embeddings_out_of_order_are_put_in_order(serve: Serve) -> None:
    def script(number: int, texts: list[str]) -> Answer:
        content = embeddings(texts)
        random.Random(5).shuffle(content["data"])
        return Answer(content)

    texts = [f"text {'a' * i}" for i in range(30)]
    found = build(serve(script).url).embed(texts)
    assert_array_equal(found.vectors, np.array([vector_of(text) for text in texts], np.float32))


def test_without_indexes_embeddings_are_in_the_order_of_the_texts(serve: Serve) -> None:
    def script(number: int, texts: list[str]) -> Answer:
        return Answer({"data": [{"embedding": vector_of(text)} for text in texts]})

    found = build(serve(script).url).embed(TEXTS)
    assert_array_equal(found.vectors, np.array([vector_of(text) for text in TEXTS], np.float32))


def item(embedding: Any, index: Any = 0) -> dict[str, Any]:
    return {"index": index, "embedding": embedding}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"data": [item([1.0])]}, "with 1 embeddings for 2 texts"),
        ({"data": [item([1.0], i) for i in range(3)]}, "with 3 embeddings for 2 texts"),
        ({"data": []}, "with 0 embeddings for 2 texts"),
        ({"data": [item([1.0]), item([1.0], 0)]}, "'index' that is missing, repeated, or not below 2"),
        ({"data": [item([1.0], 1), item([1.0], 2)]}, "'index' that is missing"),
        ({"data": [item([1.0], 0), {"embedding": [1.0]}]}, "'index' that is missing"),
        ({"data": [item([1.0], False), item([1.0], True)]}, "'index' that is missing"),
        ({"data": [item([1.0, 2.0]), item([1.0], 1)]}, "vectors of 1 and of 2 values"),
        ({"data": [item([]), item([], 1)]}, "an empty embedding for text 0"),
        ({"data": [item([1.0]), item([math.nan], 1)]}, "NaN or infinity in the embedding of text 1"),
        ({"data": [item([1.0]), item([1e39], 1)]}, "NaN or infinity in the embedding of text 1"),
        ({"data": [item([1.0]), item([10**400], 1)]}, "NaN or infinity in the embedding of text 1"),
        ({"data": [item([1.0]), item(["1.0"], 1)]}, "embedding of text 1 of the call that is not a list of numbers"),
        ({"data": [item([1.0]), item([None], 1)]}, "embedding of text 1 of the call that is not a list of numbers"),
        ({"data": [item([1.0]), item([True], 1)]}, "embedding of text 1 of the call that is not a list of numbers"),
        ({"data": [item([1.0]), item([[1.0]], 1)]}, "embedding of text 1 of the call that is not a list of numbers"),
        ({"data": [item([1.0]), item(None, 1)]}, "embedding of text 1 of the call that is not a list of numbers"),
        ({"data": [item("AAAA"), item("AAAAAA==", 1)]}, "3 bytes as the embedding of text 0"),
        ({"data": [item("AAAAAA=="), item("no!base64", 1)]}, "embedding of text 1 of the call that is not base64"),
        ({"data": [item("AADAfw=="), item("AADAfw==", 1)]}, "NaN or infinity in the embedding of text 0"),
        ({"data": [[1.0], [2.0]]}, "no list 'data' of embeddings"),
        ({"data": None}, "no list 'data' of embeddings"),
        ({"error": {"message": "out of memory"}}, 'no list \'data\' of embeddings: {"error": {"message": "out of'),
        ([1, 2], "no list 'data' of embeddings"),
    ],
)
def test_a_wrong_reply_is_an_error_at_once(serve: Serve, content: Any, complaint: str) -> None:
    server = serve(lambda number, texts: Answer(content))
    message = fails(build(server.url), TEXTS[:2])
    assert message.startswith(f"models.remote: {server.url}/v1/embeddings answered 200, but with")
    assert complaint in message
    assert len(server.calls) == 1


def test_a_dimension_that_was_not_asked_for_is_an_error(serve: Serve) -> None:
    message = fails(build(serve(answer_well).url, dimensions=2))
    assert "vectors of 3 values where 'dimensions' asks for 2" in message


def test_vectors_of_another_dimension_in_another_call_are_an_error(serve: Serve) -> None:
    def script(number: int, texts: list[str]) -> Answer:
        return Answer({"data": [item([1.0] * (number + 1))]})

    message = fails(build(serve(script).url, batch=1, concurrency=1))
    assert "models.remote" in message
    assert "values" in message


@pytest.mark.parametrize("content", [b"<html><body>\n Sign   in </body></html>", b"", b'{"data": [', b"[" * 100_000])
def test_a_reply_that_is_not_json_is_an_error_that_shows_its_beginning(serve: Serve, content: bytes) -> None:
    server = serve(lambda number, texts: Answer(content))
    message = fails(build(server.url))
    assert "answered 200 with something that is not JSON" in message
    assert len(message) < 400
    if content.startswith(b"<"):
        assert message.endswith(": <html><body> Sign in </body></html>")
    assert len(server.calls) == 1


# Failures


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_temporary_refusal_is_retried(serve: Serve, status: int) -> None:
    server = serve(lambda number, texts: answer_well(number, texts) if number == 2 else Answer({}, status))
    found = build(server.url, retries=2).embed(TEXTS)
    assert_array_equal(found.vectors[:, 0], [len(text) for text in TEXTS])
    assert len(server.calls) == 3


def test_a_persistent_refusal_is_an_error_with_status_tries_and_reply(serve: Serve) -> None:
    server = serve(lambda number, texts: Answer({"error": "overloaded"}, 503))
    message = fails(build(server.url, retries=3))
    url = f"{server.url}/v1/embeddings"
    assert message == f'models.remote: {url} answered 503 Service Unavailable, after 4 tries: {{"error": "overloaded"}}'
    assert len(server.calls) == 4


@pytest.mark.parametrize(
    ("status", "hint"),
    [(400, ""), (401, "is the key right?"), (403, ""), (404, "are base_url and model right?"), (413, ""), (422, "")],
)
def test_a_permanent_refusal_is_not_retried(serve: Serve, status: int, hint: str) -> None:
    server = serve(lambda number, texts: Answer({"error": "no"}, status))
    message = fails(build(server.url))
    assert f"answered {status}" in message
    assert hint in message
    assert len(server.calls) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_reported_and_not_followed(serve: Serve, status: int) -> None:
    elsewhere = serve(answer_well)
    target = elsewhere.url.replace("://", "://me:hidden@") + "/v1/embeddings?token=hidden"
    server = serve(lambda number, texts: Answer(b"", status, Location=target))
    message = fails(build(server.url, api_key=KEY))
    assert f"to {elsewhere.url}/v1/embeddings: write that as base_url" in message
    assert "hidden" not in message
    assert elsewhere.calls == []


@pytest.mark.parametrize("sent", [0, 20])
def test_a_broken_connection_is_retried(serve: Serve, sent: int) -> None:
    server = serve(lambda number, texts: Hangup(sent) if number == 0 else Answer(embeddings(texts)))
    assert len(build(server.url, retries=1).embed(TEXTS).vectors) == 3
    assert len(server.calls) == 2


@pytest.mark.parametrize("sent", [0, 20])
def test_a_connection_that_always_breaks_is_an_error(serve: Serve, sent: int) -> None:
    server = serve(lambda number, texts: Hangup(sent))
    message = fails(build(server.url, retries=1))
    assert "broke the connection" in message
    assert message.endswith("after 2 tries")


def test_a_refused_connection_is_reported_with_its_tries(serve: Serve) -> None:
    server = serve(answer_well)
    server.close()
    message = fails(build(server.url, retries=1))
    assert message == f"models.remote: {server.url}/v1/embeddings refuses connections (is it running?), after 2 tries"


def test_bytes_that_trickle_in_do_not_postpone_the_deadline(serve: Serve) -> None:
    server = serve(lambda number, texts: Trickle({}))  # for four seconds, and then it breaks the connection
    message = fails(build(server.url, timeout=0.2, retries=1))
    assert "gave no complete reply within 0.2 s, after 2 tries" in message


def test_a_slow_reply_is_retried(serve: Serve) -> None:
    server = serve(lambda number, texts: Trickle({}) if number == 0 else Answer(embeddings(texts)))
    assert len(build(server.url, timeout=0.3, retries=1).embed(TEXTS).vectors) == 3


# Waiting


@pytest.mark.parametrize(
    ("header", "write", "seconds"),
    [
        ("Retry-After", lambda: "7", 7.0),
        ("retry-after-ms", lambda: "1500", 1.5),
        ("Retry-After", lambda: formatdate(time.time() + 20, usegmt=True), 20.0),
    ],
)
def test_retry_after_is_honoured(
    serve: Serve, clock: QuickClock, header: str, write: Callable[[], str], seconds: float
) -> None:
    def script(number: int, texts: list[str]) -> Answer:
        return Answer(embeddings(texts)) if number else Answer({}, 429, **{header.replace("-", "_"): write()})

    server = serve(script)
    build(server.url, retries=1).embed(TEXTS)
    assert seconds - 1.5 < max(clock.slept) <= 2 * seconds  # a date has whole seconds
    assert len(server.calls) == 2


def test_waits_double_with_jitter(serve: Serve, clock: QuickClock) -> None:
    fails(build(serve(lambda number, texts: Answer({}, 500)).url, retries=8))
    assert len(clock.slept) == 8
    for wait, longest in zip(clock.slept, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 8, 8], strict=True):
        assert longest / 2 <= wait <= longest
    assert len(set(clock.slept)) == 8


@pytest.mark.parametrize("value", ["soon", "-3", "nan", ""])
def test_a_senseless_retry_after_is_ignored(serve: Serve, clock: QuickClock, value: str) -> None:
    server = serve(lambda n, texts: Answer(embeddings(texts)) if n else Answer({}, 503, Retry_After=value))
    assert len(build(server.url).embed(TEXTS).vectors) == 3
    assert all(0 < wait < 1 for wait in clock.slept)


def test_an_endpoint_that_refuses_every_call_is_retried_until_patience_ends(serve: Serve, clock: QuickClock) -> None:
    server = serve(lambda number, texts: Answer({}, 429))
    began = clock.now()
    message = fails(build(server.url, retries=2, patience=30, batch=1))
    assert "answered 429" in message
    assert 30 <= clock.now() - began < 60
    assert len(server.calls) < 20


@pytest.mark.parametrize("value", ["86400", "inf", "1e308"])
def test_an_endpoint_that_asks_to_wait_too_long_fails(serve: Serve, value: str) -> None:
    server = serve(lambda number, texts: Answer({"error": "quota"}, 429, Retry_After=value))
    message = fails(build(server.url))
    assert "answered 429 Too Many Requests and asks to wait" in message
    assert len(server.calls) == 1


# What is kept


def test_vectors_stay_stored_when_a_later_call_fails(serve: Serve) -> None:
    kept = Kept()
    texts = [f"text {i}" for i in range(10)]
    bad = serve(lambda n, asked: Answer({}, 400) if texts[6] in asked else Answer(embeddings(asked)))
    fails(build(bad.url, Context("remote", answers=kept), batch=1, concurrency=1), texts)
    assert len(kept.answers) >= 6

    bad.script = answer_well
    bad.calls.clear()
    before = len(kept.answers)
    found = build(bad.url, Context("remote", answers=kept), batch=1).embed(texts)
    assert found.reused == before
    assert len(bad.calls) == 10 - before
    assert_array_equal(found.vectors[:, 0], [len(text) for text in texts])


def test_vectors_of_calls_under_way_are_stored_when_another_call_fails(serve: Serve) -> None:
    kept = Kept()
    slow_began = threading.Event()

    def script(number: int, texts: list[str]) -> Answer:
        if texts == ["slow"]:
            slow_began.set()
            time.sleep(0.3)
            return Answer(embeddings(texts))
        slow_began.wait(10)
        return Answer({}, 400)

    message = fails(build(serve(script).url, Context("remote", answers=kept), batch=1), ["slow", "wrong"])
    assert "answered 400" in message
    assert len(kept.answers) == 1


def test_a_failure_ends_calls_that_wait_for_a_retry(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, waiting = threading.Event(), threading.Event()
    woken: list[bool] = []

    class Watched(Clock):
        def sleep(self, seconds: float) -> None:
            if seconds < 20:
                return super().sleep(seconds)
            waiting.set()
            try:
                super().sleep(seconds)
            except StoppedError:
                woken.append(True)
                raise

    def script(number: int, texts: list[str]) -> Answer:
        if texts == ["later"]:
            asked.wait(10)  # a call that begins after the refusal would wait as well
            return Answer({}, 503, Retry_After="60")
        asked.set()
        waiting.wait(10)
        return Answer({}, 401)

    monkeypatch.setattr(pacing, "Clock", Watched)
    assert "answered 401" in fails(build(serve(script).url, batch=1), ["later", "wrong"])
    assert woken == [True]


def test_calls_end_at_once_when_their_caller_is_gone(serve: Serve) -> None:
    asked, release = threading.Event(), threading.Event()

    def script(number: int, texts: list[str]) -> Answer:
        if texts == ["held"]:
            asked.set()
            release.wait(20)
        else:
            asked.wait(10)
        return Answer(embeddings(texts))

    answers = build(serve(script).url, Context("left"), batch=1)._compute(["held", "answered"])
    next(answers)
    callers = [thread for thread in threading.enumerate() if thread.name.startswith("models.left")]
    answers.close()  # type: ignore[attr-defined]
    for caller in callers:
        caller.join(10)
    alive = [caller.is_alive() for caller in callers]
    release.set()
    assert alive
    assert not any(alive)


def test_progress_counts_texts(serve: Serve) -> None:
    seen: list[tuple[int, int]] = []
    context = Context("remote", progress=lambda done, total, unit=None: seen.append((done, total)))
    build(serve(answer_well).url, context, batch=1).embed(TEXTS)
    assert seen[-1] == (3, 3)
    assert {total for _, total in seen} == {3}


# The key of what is kept


@pytest.mark.parametrize(
    "same",
    [
        {"api_key": KEY}, {"headers": {}}, {"batch": 2}, {"concurrency": 9}, {"timeout": 3},
        {"retries": 0}, {"encoding_format": "base64"}, {"base_url": "http://host/v1"}, {"base_url": "http://HOST/"},
    ],
)  # fmt: skip
def test_credentials_and_ways_to_call_are_not_part_of_the_key(same: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **{k.replace("base_", ""): v for k, v in same.items()}}).key == (
        build("http://host").key
    )


@pytest.mark.parametrize(
    "other",
    [
        {"model": "large"}, {"dimensions": 2}, {"max_characters": 9}, {"normalize": True}, {"url": "http://other"},
        {"url": "http://host:8080"}, {"url": "https://host"},
    ],
)  # fmt: skip
def test_settings_that_influence_vectors_are_part_of_the_key(other: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **other}).key != build("http://host").key


def test_headers_are_part_of_the_key_because_gateways_route_by_them_but_not_the_values_of_secrets() -> None:
    check_keys_of_headers(partial(build, "http://host"))


@pytest.mark.parametrize("key", ["query_prefix", "document_prefix", "similarity"])
def test_a_prefix_changes_the_run_but_not_the_models_key(key: str) -> None:
    changed: dict[str, Any] = {key: "dot"}
    other, plain = build("http://host", **changed), build("http://host")
    assert other.key == plain.key
    assert other.content() != plain.content()


def test_results_record_the_model_and_its_url() -> None:
    described = build("https://host/v1/embeddings?token=hidden", api_key=KEY).describe()
    assert described == {"use": "http", "model": "tiny", "url": "https://host/v1/embeddings"}


# Secrets


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_that_a_reply_repeats_is_not_shown(serve: Serve, status: int) -> None:
    padding = "x" * 190
    server = serve(lambda number, texts: Answer({"error": f"wrong key {KEY}", "more": f"{padding} {KEY}"}, status))
    model = build(server.url, api_key=KEY, retries=0)
    with pytest.raises(RagevalError) as caught:
        model.embed(TEXTS)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in str(chain)
        assert KEY[:8] not in str(chain)
        chain = chain.__cause__ or chain.__context__
    assert "wrong key ***" in str(caught.value)


def test_a_secret_header_that_a_reply_repeats_is_masked(serve: Serve) -> None:
    server = serve(lambda number, texts: Answer({"error": "unknown token abcd1234"}, 403))
    headers = {"Proxy-Token": Secret("Token abcd1234", "Token ${secret:T}")}
    message = fails(build(server.url, headers=headers))
    assert "abcd1234" not in message
    assert "unknown token ***" in message


@pytest.mark.parametrize("value", [f"{KEY}\nInjected: 1", f"{KEY}\x00", f"{KEY}€"])
def test_a_key_that_does_not_fit_into_a_header_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(UsageError, match="'Authorization'") as caught:
        build("http://127.0.0.1:9", api_key=value).embed(TEXTS)
    assert KEY not in str(caught.value)


def test_a_header_with_an_invalid_name_is_refused() -> None:
    with pytest.raises(UsageError, match="'X Team' is not a valid header name"):
        build("http://127.0.0.1:9", headers={"X Team": "a"}).embed(TEXTS)


# The spec


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("localhost:8080", "write a URL such as"),
        ("ftp://host", "write a URL such as"),
        ("http://", "write a URL such as"),
        ("http://host:99999", "this is not a URL"),
        ("http://host:0", "write a URL such as"),
        ("http://me:hidden@host", "this URL has credentials"),
        ("http://host/a b", "percent-encode"),
        ("http://[::1", "this is not a URL"),
    ],
)
def test_a_wrong_url_is_found_by_validate(tmp_path: Path, url: str, complaint: str) -> None:
    from rageval_spec.diagnostics import SpecError
    from tests.tiny import write_spec

    models = {"remote": {"use": "http", "base_url": url, "model": "tiny"}}
    with pytest.raises(SpecError, match=complaint) as caught:
        load(write_spec(tmp_path, models=models))
    assert len(caught.value.diagnostics) == 1


def test_a_secret_from_the_environment_reaches_only_the_endpoint(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rageval_spec import runner
    from tests.tiny import write_spec

    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    server = serve(answer_well)
    remote = {"use": "http", "base_url": server.url, "model": "tiny", "api_key": "${secret:EMBEDDINGS_KEY}"}
    spec = write_spec(
        tmp_path,
        models={"remote": remote},
        systems={"near": {"use": "dense", "model": "remote"}},
        reports=["json", "markdown", "junit"],
    )
    outcome = runner.run(spec, runner.Options(output=tmp_path / "out", quiet=True))
    assert outcome.exit_code == 0
    assert {name.lower(): value for name, value in server.headers[0].items()}["authorization"] == f"Bearer {KEY}"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 6
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
