from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.chat import (
    CallError,
    ChatReply,
    ChatRequest,
    InterruptedCallError,
    LimitError,
    Message,
    TokenChoice,
)
from rageval_spec.endpoints import pacing
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.models import chat
from rageval_spec.models.chat import Chat, ChatNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.secret import Secret
from rageval_spec.store.replies import FileAnswers, MemoryAnswers
from tests.models.chat_endpoint import ChatScript, ChatServer, QuickClock, completion, refusal, say_yes
from tests.models.endpoint import Answer, Hangup, Trickle

KEY = "sk-very-secret-4711"
SCHEMA = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"], "additionalProperties": False}

Serve = Callable[..., ChatServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ChatServer] = []

    def start(script: ChatScript = say_yes) -> ChatServer:
        servers.append(ChatServer(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> QuickClock:
    quick = QuickClock()
    monkeypatch.setattr(pacing, "Clock", lambda: quick)
    return quick


def build(url: str, context: Context | None = None, **keys: Any) -> Chat:
    node = ChatNode.model_validate({"use": "chat", "base_url": url, "model": "tiny", **keys})
    return Chat(node, context or Context("judge", answers=MemoryAnswers()))


def question(text: str = "Is it so?", **keys: Any) -> ChatRequest:
    return ChatRequest((Message("system", "Judge."), Message("user", text)), **keys)


def fails(model: Chat, request: ChatRequest | None = None) -> str:
    """The message of the error that asking ends with."""
    with pytest.raises(CallError) as caught:
        model.ask(request or question())
    return str(caught.value)


def always(answer: Answer) -> ChatScript:
    return lambda number, body: answer


def in_turn(*answers: Answer) -> ChatScript:
    """These answers, and then good ones."""
    return lambda number, body: answers[number] if number < len(answers) else say_yes(number, body)


# What is sent


def test_a_call_says_no_more_than_it_must(serve: Serve) -> None:
    server = serve()
    reply = build(server.url).ask(question())
    assert reply == ChatReply("yes", 7, 3, "stop")
    assert server.paths == ["/v1/chat/completions"]
    assert server.calls == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Is it so?"}],
            "temperature": 0,
        }
    ]
    assert "authorization" not in server.headers_of(0)


def test_keys_of_the_node_are_sent(serve: Serve) -> None:
    server = serve()
    keys: dict[str, Any] = {
        "api_key": KEY + "\n",
        "headers": {"X-Team": "eval"},
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 90,
    }
    build(server.url, **keys, extra={"reasoning_effort": "low", "seed": 8}).ask(question())
    (call,) = server.calls
    assert (call["temperature"], call["seed"], call["max_tokens"]) == (0.5, 8, 90)
    assert call["reasoning_effort"] == "low"
    assert server.headers_of(0)["authorization"] == f"Bearer {KEY}"
    assert server.headers_of(0)["x-team"] == "eval"


def test_a_request_limits_its_own_reply(serve: Serve) -> None:
    server = serve()
    build(server.url, max_tokens=90).ask(question(max_tokens=5))
    assert server.calls[0]["max_tokens"] == 5


def test_no_temperature_is_sent_where_the_spec_says_null(serve: Serve) -> None:
    server = serve()
    build(server.url, temperature=None).ask(question())
    assert "temperature" not in server.calls[0]


def test_repeats_are_other_questions_with_another_seed_and_temperature(serve: Serve) -> None:
    server = serve()
    model = build(server.url, seed=10, repeat_temperature=0.9)
    for repeat in (0, 1, 2):
        model.ask(question(repeat=repeat))
    assert [(call["seed"], call["temperature"]) for call in server.calls] == [(10, 0), (11, 0.9), (12, 0.9)]


def test_the_endpoint_enforces_a_schema(serve: Serve) -> None:
    server = serve()
    build(server.url).ask(question(schema=SCHEMA))
    assert server.calls[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
    }
    assert server.calls[0]["messages"][-1]["content"] == "Is it so?"


@pytest.mark.parametrize(("structured", "form"), [("json_object", {"type": "json_object"}), ("none", None)])
def test_the_prompt_shows_a_schema_that_the_endpoint_does_not_enforce(serve: Serve, structured: str, form: Any) -> None:
    server = serve()
    build(server.url, structured=structured).ask(question(schema=SCHEMA))
    assert server.calls[0].get("response_format") == form
    prompt = server.calls[0]["messages"][-1]["content"]
    assert prompt.startswith("Is it so?\n\n")
    assert "JSON" in prompt
    assert prompt.endswith(json.dumps(SCHEMA))


def test_any_text_arrives(serve: Serve) -> None:
    server = serve()
    text = '"quoted"\n\\ 猫 🐈 \x00 \ud800'
    build(server.url).ask(question(text))
    assert server.calls[0]["messages"][-1]["content"] == text


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/api", "/api/v1/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
    ],
)
def test_base_url_with_and_without_version(serve: Serve, base_url: str, path: str) -> None:
    server = serve()
    build(server.url + base_url).ask(question())
    assert server.paths == [path]


@pytest.mark.parametrize(
    ("dialect", "url"),
    [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("anthropic", "https://api.anthropic.com/v1/messages"),
    ],
)
def test_the_providers_own_place_is_the_default(dialect: str, url: str) -> None:
    node = ChatNode.model_validate({"use": "chat", "model": "tiny", "dialect": dialect})
    assert Chat(node, Context("judge")).url == url


# Azure


@pytest.mark.parametrize(
    ("base_url", "path"),
    [
        ("", "/openai/deployments/tiny/chat/completions?api-version=2024-10-21"),
        ("/openai", "/openai/deployments/tiny/chat/completions?api-version=2024-10-21"),
        ("/openai/deployments/x", "/openai/deployments/x/chat/completions?api-version=2024-10-21"),
        (
            "/openai/deployments/x/chat/completions?api-version=1",
            "/openai/deployments/x/chat/completions?api-version=1",
        ),
        ("/openai/v1", "/openai/v1/chat/completions"),
    ],
)
def test_azure_has_the_deployment_in_the_path(serve: Serve, base_url: str, path: str) -> None:
    server = serve()
    build(server.url + base_url, dialect="azure", api_key=KEY).ask(question())
    assert server.paths == [path]
    assert server.headers_of(0)["api-key"] == KEY
    assert "authorization" not in server.headers_of(0)


def test_azure_deployments_of_any_name(serve: Serve) -> None:
    server = serve()
    build(server.url, dialect="azure", model="team/judge 1").ask(question())
    assert server.paths[0].startswith("/openai/deployments/team%2Fjudge%201/chat/completions")


def test_azure_without_a_place_is_a_wrong_spec() -> None:
    with pytest.raises(ValueError, match="azure needs a base_url"):
        ChatNode.model_validate({"use": "chat", "model": "tiny", "dialect": "azure"})


# Anthropic


def message(*blocks: dict[str, Any], **keys: Any) -> Answer:
    content = list(blocks) or [{"type": "text", "text": "yes"}]
    usage = {"input_tokens": 7, "output_tokens": 3}
    return Answer({"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage, **keys})


def test_anthropic_has_the_system_apart_and_always_a_limit(serve: Serve) -> None:
    server = serve(always(message()))
    reply = build(server.url, dialect="anthropic", api_key=KEY, seed=3).ask(question())
    assert reply == ChatReply("yes", 7, 3, "stop")
    assert server.paths == ["/v1/messages"]
    assert server.calls == [
        {
            "model": "tiny",
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": "Is it so?"}],
            "system": "Judge.",
            "temperature": 0,
        }
    ]
    sent = server.headers_of(0)
    assert (sent["x-api-key"], sent["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in sent


def test_anthropic_gives_a_schema_as_the_arguments_of_a_tool(serve: Serve) -> None:
    server = serve(always(message({"type": "tool_use", "name": "reply", "input": {"v": "é"}}, stop_reason="tool_use")))
    reply = build(server.url, dialect="anthropic").ask(question(schema=SCHEMA))
    assert (reply.text, reply.finish) == ('{"v": "é"}', "stop")
    (call,) = server.calls
    assert call["tools"][0]["input_schema"] == SCHEMA
    assert call["tool_choice"] == {"type": "tool", "name": call["tools"][0]["name"]}


def test_anthropic_models_that_think_refuse_the_tool_and_get_the_schema_in_another_way(serve: Serve) -> None:
    refused = refusal("tool_choice: forced tool use is not supported for this model")

    def script(number: int, body: dict[str, Any]) -> Answer:
        return refused if "tools" in body else message({"type": "text", "text": '{"v": "a"}'})

    server = serve(script)
    model = build(server.url, dialect="anthropic")
    assert model.ask(question(schema=SCHEMA)).text == '{"v": "a"}'
    assert server.calls[1]["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    model.ask(question("Another?", schema=SCHEMA))
    assert len(server.calls) == 3


def test_what_a_model_thinks_is_no_reply_and_cached_tokens_count(serve: Serve) -> None:
    thought = {"type": "thinking", "thinking": "Hmm."}
    usage = {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    answer = message(thought, {"type": "text", "text": "no"}, usage=usage, stop_reason="max_tokens")
    reply = build(serve(always(answer)).url, dialect="anthropic").ask(question())
    assert reply == ChatReply("no", 125, 9, "length")


def test_a_conversation_of_the_system_alone_is_said_by_the_user(serve: Serve) -> None:
    server = serve(always(message()))
    build(server.url, dialect="anthropic").ask(ChatRequest((Message("system", "Speak."),)))
    assert server.calls[0]["messages"] == [{"role": "user", "content": "Speak."}]
    assert "system" not in server.calls[0]


# What is read


def replies(serve: Serve, content: Any, request: ChatRequest | None = None) -> ChatReply:
    return build(serve(always(Answer(content))).url).ask(request or question())


def test_a_reply_that_was_cut_off_says_so(serve: Serve) -> None:
    assert replies(serve, completion("I thi", finish_reason="length")).finish == "length"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"v": 1}'}}]}, '{"v": 1}'),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": None, "reasoning_content": "Hmm."}, ""),
        ({"content": "half \ud83d"}, "half \ufffd"),
        ({"content": "whole 🐈"}, "whole 🐈"),
    ],
)
def test_replies_of_all_kinds(serve: Serve, message: dict[str, Any], text: str) -> None:
    assert replies(serve, completion(message=message)).text == text


def test_tokens_that_nobody_counts_are_unknown(serve: Serve) -> None:
    content = completion()
    del content["usage"]
    reply = replies(serve, content)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


def test_probabilities_of_tokens(serve: Serve) -> None:
    def place(token: str, *others: tuple[str, float]) -> dict[str, Any]:
        top = [{"token": other, "logprob": logprob} for other, logprob in others]
        return {"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": top}

    logprobs = {"content": [place("4", ("5", -0.2), ("4", -0.5)), place(".")]}
    server = serve(always(Answer(completion("4.", logprobs=logprobs))))
    context = Context("judge", answers=MemoryAnswers())
    request = question(logprobs=True)
    reply = build(server.url, context).ask(request)
    assert (server.calls[0]["logprobs"], server.calls[0]["top_logprobs"]) == (True, 20)
    expected = ((TokenChoice("4", -0.5), TokenChoice("5", -0.2)), (TokenChoice(".", -0.5),))
    assert reply.choices == expected
    kept = build(server.url, context).find(request)
    assert kept is not None
    assert kept.choices == expected
    assert isinstance(kept.choices[0][0], TokenChoice)


# What models refuse is left out from then on


@pytest.mark.parametrize(
    ("answer", "keys", "request_keys", "before", "after"),
    [
        (
            refusal("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
                    "instead.", param="max_tokens", code="unsupported_parameter"),
            {}, {"max_tokens": 5}, {"max_tokens": 5}, {"max_tokens": None, "max_completion_tokens": 5},
        ),
        (
            refusal("Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value "
                    "is supported.", param="temperature", code="unsupported_value"),
            {}, {}, {"temperature": 0}, {"temperature": None},
        ),
        (refusal("`temperature` is deprecated for this model."), {}, {}, {"temperature": 0}, {"temperature": None}),
        (
            Answer({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not "
                    "permitted"}]}, 422),
            {"seed": 5}, {}, {"seed": 5}, {"seed": None},
        ),
        (
            refusal("You are not allowed to request logprobs from this model", 403),
            {}, {"logprobs": True}, {"logprobs": True}, {"logprobs": None, "top_logprobs": None},
        ),
        (
            refusal("Invalid value for 'top_logprobs': must be less than or equal to 5.", param="top_logprobs"),
            {}, {"logprobs": True}, {"top_logprobs": 20}, {"logprobs": True, "top_logprobs": 5},
        ),
        (
            refusal("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
            {}, {"schema": SCHEMA},
            {"response_format": {"type": "json_schema",
                                 "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}},
            {"response_format": {"type": "json_object"}},
        ),
        (
            Answer({"error": "'response_format.type' must be 'json_schema' or 'text'"}, 400),
            {"structured": "auto"}, {"schema": SCHEMA}, {}, {"response_format": {"type": "json_object"}},
        ),
    ],
)  # fmt: skip
def test_what_a_model_refuses_is_left_out_once_and_for_all(
    serve: Serve, answer: Answer, keys: Any, request_keys: Any, before: dict[str, Any], after: dict[str, Any]
) -> None:
    server = serve(in_turn(answer))
    model = build(server.url, retries=0, **keys)
    assert model.ask(question(**request_keys)).text == "yes"
    model.ask(question("Another?", **request_keys))
    first, *others = server.calls
    assert {key: first.get(key) for key in before} == before
    assert len(others) == 2
    for call in others:
        assert {key: call.get(key) for key in after} == after


def test_an_endpoint_that_enforces_no_form_at_all_is_asked_in_words(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return refusal("response_format is not supported") if "response_format" in body else say_yes(number, body)

    server = serve(script)
    model = build(server.url)
    model.ask(question(schema=SCHEMA))
    model.ask(question("Another?", schema=SCHEMA))
    forms = [call.get("response_format", {}).get("type") for call in server.calls]
    assert forms == ["json_schema", "json_object", None, None]
    assert json.dumps(SCHEMA) in server.calls[-1]["messages"][-1]["content"]


def test_a_form_that_the_spec_insists_on_is_not_given_up(serve: Serve) -> None:
    server = serve(always(refusal("response_format is not supported")))
    assert "response_format is not supported" in fails(
        build(server.url, structured="json_schema"), question(schema=SCHEMA)
    )
    assert len(server.calls) == 1


def test_too_long_a_prompt_is_no_reason_to_ask_in_another_form(serve: Serve) -> None:
    server = serve(
        always(refusal("prompt is too long: messages and response_format have 9000 tokens, 8192 are allowed"))
    )
    assert "use fewer or shorter contexts" in fails(build(server.url), question(schema=SCHEMA))
    assert len(server.calls) == 1


def test_what_extra_insists_on_is_not_left_out(serve: Serve) -> None:
    server = serve(always(refusal("temperature is not supported", param="temperature")))
    assert "temperature is not supported" in fails(build(server.url, extra={"temperature": 0.3}))
    assert len(server.calls) <= 2


def test_many_at_once_learn_it_together(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        is_refused = "temperature" in body
        return refusal("temperature is not supported with this model") if is_refused else say_yes(number, body)

    server = serve(script)
    model = build(server.url, retries=0)
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda number: model.ask(question(f"{number}?")).text, range(40)))
    assert texts == ["yes"] * 40
    assert sum("temperature" in call for call in server.calls) <= 8


# Faults


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_passing_refusal_is_tried_again_soon(serve: Serve, clock: QuickClock, status: int) -> None:
    server = serve(in_turn(Answer({}, status)))
    assert build(server.url).ask(question()).text == "yes"
    assert len(server.calls) == 2
    assert len(clock.slept) == 1
    assert 0.1 <= clock.slept[0] <= 0.2


@pytest.mark.parametrize(
    "answer", [Hangup(), Hangup(20), Answer(b"<html>Bad gateway"), Answer({"error": "overloaded"})]
)
def test_a_broken_reply_is_tried_again(serve: Serve, answer: Answer) -> None:
    server = serve(in_turn(answer))
    assert build(server.url).ask(question()).text == "yes"


def test_a_slow_reply_is_tried_again(serve: Serve) -> None:
    server = serve(in_turn(Trickle({})))
    assert build(server.url, timeout=0.3).ask(question()).text == "yes"


def test_tries_end(serve: Serve) -> None:
    server = serve(always(Answer({"error": {"message": "overloaded"}}, 503)))
    message = fails(build(server.url, retries=3))
    assert message == (
        f"models.judge: {server.url}/v1/chat/completions answered 503 Service Unavailable, after 4 tries: "
        '{"error": {"message": "overloaded"}}'
    )
    assert len(server.calls) == 4


@pytest.mark.parametrize(("keys", "patience"), [({}, 75), ({"patience": 20}, 20)])
def test_calls_are_tried_as_long_as_the_spec_is_patient_where_all_are_refused(
    serve: Serve, clock: QuickClock, keys: dict[str, Any], patience: float
) -> None:
    server = serve(always(Answer({}, 429)))
    model, began = build(server.url, **keys), clock.now()
    with pytest.raises(CallError) as caught:
        model.ask(question())
    assert patience <= clock.now() - began < patience + 20
    assert not caught.value.is_temporary  # other words would be refused, too
    assert len(server.calls) < 20


def test_questions_that_are_refused_without_end_fail_together(serve: Serve, clock: QuickClock) -> None:
    server = serve(always(Answer({}, 429)))
    model, began = build(server.url, retries=2, patience=60), clock.now()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: fails(model, question(f"{number}?")), range(4)))
    assert clock.now() - began < 150
    assert len(server.calls) < 30


def test_a_call_that_alone_is_refused_has_no_more_tries_than_others(serve: Serve) -> None:
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


def test_another_thread_waits_too_where_the_endpoint_asks_for_it(serve: Serve, clock: QuickClock) -> None:
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


def test_a_refusal_without_a_time_stops_nobody_else(serve: Serve, clock: QuickClock) -> None:
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


def test_who_asks_for_too_much_patience_has_failed(serve: Serve) -> None:
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
            "the account has nothing left to spend, which no further try changes",
        ),
        (
            refusal("This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
            "this is more than the model takes: use fewer or shorter contexts",
        ),
        (refusal("Your messages are bad"), "answered 400 Bad Request: "),
        (
            Answer({}, 302, Location="https://login.invalid/x?token=1"),
            "to https://login.invalid/x: write that as base_url",
        ),
    ],
)
def test_a_refusal_for_good_is_not_tried_again_and_says_what_to_do(serve: Serve, answer: Answer, advice: str) -> None:
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
def test_a_reply_that_is_none_fails_after_few_tries(serve: Serve, content: Any, complaint: str) -> None:
    server = serve(always(Answer(content)))
    message = fails(build(server.url))
    assert f"answered 200 {'with' if 'JSON' in complaint else 'but'}".replace("200 but", "200, but") in message
    assert complaint in message
    assert len(server.calls) == 3


def test_nobody_listens() -> None:
    server = ChatServer()
    server.close()
    with pytest.raises(CallError, match="refuses connections: does it run\\?, after 3 tries") as caught:
        build(server.url, retries=2).ask(question())
    assert not caught.value.is_temporary


@pytest.mark.parametrize(
    ("answer", "is_temporary"),
    [(Answer({}, 500), True), (Answer({}, 429), True), (Hangup(), True), (Answer(b"<html>"), True),
     (Answer({}, 401), False), (Answer({}, 404), False), (Answer({}, 400), False)],
)  # fmt: skip
def test_a_failure_says_whether_other_words_may_help(serve: Serve, answer: Answer, is_temporary: bool) -> None:
    with pytest.raises(CallError) as caught:
        build(serve(always(answer)).url, retries=0).ask(question())
    assert caught.value.is_temporary is is_temporary


def test_after_ten_failures_in_a_row_nobody_is_asked_until_one_call_goes_well(serve: Serve, clock: QuickClock) -> None:
    is_broken = True
    server = serve(lambda number, body: Answer({}, 500) if is_broken else say_yes(number, body))
    model = build(server.url, retries=0)
    for number in range(10):
        assert "answered 500" in fails(model, question(f"{number}?"))
    message = fails(model, question("Once more?"))
    assert message.startswith("models.judge: not asked, because 10 calls in a row failed, the last one so: http://")
    with pytest.raises(CallError) as caught:
        model.ask(question("And again?"))
    assert not caught.value.is_temporary
    assert message.count("models.judge") == 1
    assert len(server.calls) == 10
    is_broken = False
    clock.time += 60
    for number in range(3):
        assert model.ask(question(f"Again {number}?")).text == "yes"


def test_calls_that_are_not_made_cost_nothing(serve: Serve) -> None:
    budget = Budget()
    model = build(serve(always(Answer({}, 500))).url, Context("judge", budget=budget), retries=0)
    for number in range(15):
        fails(model, question(f"{number}?"))
    assert budget.calls == 10


def test_wrong_requests_do_not_break_the_endpoint_for_others(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return refusal("prompt is too long") if "long" in body["messages"][-1]["content"] else say_yes(number, body)

    model = build(serve(script).url)
    for number in range(20):
        fails(model, question(f"long {number}"))
    assert model.ask(question("short")).text == "yes"


# One call a question


@pytest.fixture
def followers(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released by each thread that waits for another's call."""
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
    context = Context("judge", answers=MemoryAnswers(), progress=lambda done, total: seen.append((done, total)))
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


def test_who_waits_for_an_equal_question_fails_with_it(serve: Serve, followers: threading.Semaphore) -> None:
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


def test_a_failed_question_may_be_asked_again(serve: Serve) -> None:
    server = serve(in_turn(Answer({}, 401)))
    model = build(server.url)
    fails(model)
    assert model.ask(question()).text == "yes"


def test_no_more_calls_at_once_than_are_allowed(serve: Serve) -> None:
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


def test_requests_per_minute_hold_for_all_threads(serve: Serve, clock: QuickClock) -> None:
    model = build(serve().url, requests_per_minute=60)
    began = clock.now()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: model.ask(question(f"{number}?")), range(10)))
    assert clock.now() - began >= 9


def test_tokens_per_minute_count_what_was_used(serve: Serve, clock: QuickClock) -> None:
    model = build(serve().url, tokens_per_minute=600, max_tokens=9990)  # ten minutes are expected, a second is used
    began = clock.now()
    for number in range(4):
        model.ask(question(f"{number}?"))
    assert clock.now() - began == pytest.approx(3)


# What is kept


def test_a_second_object_asks_nobody(serve: Serve, tmp_path: Path) -> None:
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


def test_finding_calls_nobody() -> None:
    assert build("http://127.0.0.1:9").find(question()) is None


def test_a_reply_is_kept_before_it_is_given(serve: Serve) -> None:
    class Failing(MemoryAnswers):
        def keep(self, model: str, answers: Mapping[bytes, bytes]) -> None:
            raise RagevalError("store: the disk is full")

    budget = Budget()
    model = build(serve().url, Context("judge", answers=Failing(), budget=budget), price={"input": 1e6, "output": 1e6})
    with pytest.raises(RagevalError, match="the disk is full"):
        model.ask(question())
    assert budget.cost == pytest.approx(10)


def test_what_is_kept_holds_no_time(serve: Serve) -> None:
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


def test_a_fresh_reply_replaces_the_one_that_is_kept(serve: Serve) -> None:
    server = serve(lambda number, body: Answer(completion(f"reply {number}")))
    model = build(server.url)
    assert model.ask(question()).text == "reply 0"
    assert model.ask(question(), fresh=True) == ChatReply("reply 1", 7, 3, "stop")
    assert model.ask(question()) == ChatReply("reply 1", 7, 3, "stop", reused=True)


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


def test_a_call_that_fails_costs_nothing_but_is_counted(serve: Serve) -> None:
    budget = Budget()
    price = {"input": 2, "output": 8}
    fails(build(serve(always(Answer({}, 401))).url, Context("judge", budget=budget), price=price))
    assert (budget.calls, budget.cost, budget.errors) == (1, 0.0, 0)


def test_tries_are_one_call(serve: Serve) -> None:
    budget = Budget()
    build(serve(in_turn(Answer({}, 500), Answer({}, 429))).url, Context("judge", budget=budget)).ask(question())
    assert budget.calls == 1


def test_the_limit_on_calls_counts_tries(serve: Serve) -> None:
    server = serve(always(Answer({}, 500)))
    model = build(server.url, Context("judge", budget=Budget(max_calls=4)))
    for text in ("0?", "1?"):
        with pytest.raises(LimitError, match="4 of 4 calls made"):
            model.ask(question(text))
    assert len(server.calls) == 4


def test_the_limit_on_calls_stops_those_that_are_not_kept(serve: Serve) -> None:
    server = serve()
    model = build(server.url, Context("judge", answers=MemoryAnswers(), budget=Budget(max_calls=2)))
    model.ask(question("0?"))
    model.ask(question("1?"))
    with pytest.raises(LimitError, match="2 of 2 calls made"):
        model.ask(question("2?"))
    assert model.ask(question("1?")).reused
    assert len(server.calls) == 2


def test_the_limit_on_cost_counts_what_a_call_may_cost(serve: Serve) -> None:
    server = serve()
    context = Context("judge", answers=MemoryAnswers(), budget=Budget(max_cost=0.001))
    model = build(server.url, context, price={"input": 1, "output": 100})
    model.ask(question("0?", max_tokens=5))
    with pytest.raises(LimitError, match="max_cost"):
        model.ask(question("1?"))  # its reply may have 500 tokens
    assert len(server.calls) == 1


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_calls_under_way_do_not_use_up_the_limit_on_cost_and_may_be_tried_again(serve: Serve, concurrency: int) -> None:
    """Those that wait for room must leave those that need another try their place."""
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


def test_stopping_ends_those_that_wait_for_room(serve: Serve) -> None:
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
    assert "limits.max_cost" in (unknown.check() or "")
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


def test_stop_ends_what_is_under_way_and_what_waits(serve: Serve) -> None:
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
        {"api_key": KEY}, {"headers": {"X-Team": "a"}}, {"concurrency": 9}, {"timeout": 3}, {"retries": 0},
        {"price": {"input": 1, "output": 2}}, {"requests_per_minute": 5}, {"tokens_per_minute": 5},
        {"url": "http://host/v1"}, {"url": "http://HOST/"}, {"api_version": "2025-01-01"},
    ],
)  # fmt: skip
def test_who_asks_and_how_is_no_part_of_the_key(same: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **same}).key == build("http://host").key


@pytest.mark.parametrize(
    "other",
    [
        {"model": "large"}, {"url": "http://other"}, {"temperature": 1}, {"seed": 1}, {"structured": "none"},
        {"extra": {"top_p": 0.5}}, {"dialect": "anthropic"}, {"max_tokens": 9}, {"repeat_temperature": 1},
    ],
)  # fmt: skip
def test_what_a_reply_depends_on_is_part_of_the_key(other: dict[str, Any]) -> None:
    assert build(**{"url": "http://host", **other}).key != build("http://host").key


def test_results_say_the_model_and_where_it_was_asked() -> None:
    described = build("https://host/v1/chat/completions?token=hidden", api_key=KEY).describe()
    assert described == {"use": "chat", "model": "tiny", "url": "https://host/v1/chat/completions"}


# Secrets


@pytest.mark.parametrize("dialect", ["openai", "azure", "anthropic"])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_reply_that_repeats_the_key_does_not_show_it(serve: Serve, status: int, dialect: str) -> None:
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


def test_the_message_of_the_open_breaker_holds_no_secret(serve: Serve) -> None:
    model = build(serve(always(Answer({"error": KEY}, 401))).url, api_key=KEY)
    messages = [fails(model, question(f"{number}?")) for number in range(12)]
    assert "not asked" in messages[-1]
    assert not any(KEY in message for message in messages)


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="'Authorization'") as caught:
        build("http://127.0.0.1:9", api_key=f"{KEY}\nInjected: 1").prepare()
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://me:hidden@host", "http://host/a b"])
def test_a_wrong_url_is_no_node(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        build(url)


def test_answers_are_found_by_many_threads_at_once(serve: Serve) -> None:
    server = serve(lambda number, body: Answer(completion(body["messages"][-1]["content"].upper())))
    model = build(server.url)

    def ask(number: int) -> str:
        return model.ask(question(f"question {number % 25}")).text

    with ThreadPoolExecutor(16) as pool:
        texts: Sequence[str] = list(pool.map(ask, range(400)))
    assert texts == [f"QUESTION {number % 25}" for number in range(400)]
    assert len(server.calls) == 25
