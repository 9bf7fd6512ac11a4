"""The requests to chat endpoints of each dialect, and how their replies are read."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, Message, TokenChoice
from rageval_spec.endpoints import dialects
from rageval_spec.endpoints.dialects import find_price
from rageval_spec.models.chat import Chat, ChatNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.store.store import MemoryAnswers
from tests.models.chat_endpoint import completion, refusal, say_yes
from tests.models.chatting import KEY, SCHEMA, Serve, always, build, clock, fails, in_turn, no_proxies, question, serve
from tests.models.endpoint import Answer

__all__ = ["clock", "no_proxies", "serve"]


# What is sent


def test_a_call_sends_only_the_necessary_keys(serve: Serve) -> None:
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


def test_a_request_can_limit_its_own_reply(serve: Serve) -> None:
    server = serve()
    build(server.url, max_tokens=90).ask(question(max_tokens=5))
    assert server.calls[0]["max_tokens"] == 5


def test_with_a_null_temperature_none_is_sent(serve: Serve) -> None:
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


def test_any_text_arrives_unchanged(serve: Serve) -> None:
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
def test_base_url_can_have_or_lack_a_version(serve: Serve, base_url: str, path: str) -> None:
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
def test_the_providers_own_url_is_the_default(dialect: str, url: str) -> None:
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


def test_azure_deployments_can_have_any_name(serve: Serve) -> None:
    server = serve()
    build(server.url, dialect="azure", model="team/judge 1").ask(question())
    assert server.paths[0].startswith("/openai/deployments/team%2Fjudge%201/chat/completions")


def test_azure_requires_a_base_url() -> None:
    with pytest.raises(ValueError, match="azure needs a base_url"):
        ChatNode.model_validate({"use": "chat", "model": "tiny", "dialect": "azure"})


# Anthropic


def message(*blocks: dict[str, Any], **keys: Any) -> Answer:
    content = list(blocks) or [{"type": "text", "text": "yes"}]
    usage = {"input_tokens": 7, "output_tokens": 3}
    return Answer({"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage, **keys})


def test_anthropic_gets_the_system_prompt_separately_and_always_a_token_limit(serve: Serve) -> None:
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


def test_anthropic_gets_a_schema_as_a_tool(serve: Serve) -> None:
    server = serve(always(message({"type": "tool_use", "name": "reply", "input": {"v": "é"}}, stop_reason="tool_use")))
    reply = build(server.url, dialect="anthropic").ask(question(schema=SCHEMA))
    assert (reply.text, reply.finish) == ('{"v": "é"}', "stop")
    (call,) = server.calls
    assert call["tools"][0]["input_schema"] == SCHEMA
    assert call["tool_choice"] == {"type": "tool", "name": call["tools"][0]["name"]}


def test_anthropic_models_that_refuse_the_tool_get_the_schema_in_another_way(serve: Serve) -> None:
    refused = refusal("tool_choice: forced tool use is not supported for this model")

    def script(number: int, body: dict[str, Any]) -> Answer:
        return refused if "tools" in body else message({"type": "text", "text": '{"v": "a"}'})

    server = serve(script)
    model = build(server.url, dialect="anthropic")
    assert model.ask(question(schema=SCHEMA)).text == '{"v": "a"}'
    assert server.calls[1]["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    model.ask(question("Another?", schema=SCHEMA))
    assert len(server.calls) == 3


def test_thoughts_are_not_part_of_the_reply_and_cached_tokens_count(serve: Serve) -> None:
    thought = {"type": "thinking", "thinking": "Hmm."}
    usage = {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    answer = message(thought, {"type": "text", "text": "no"}, usage=usage, stop_reason="max_tokens")
    reply = build(serve(always(answer)).url, dialect="anthropic").ask(question())
    assert reply == ChatReply("no", 125, 9, "length")


def test_a_request_with_only_a_system_message_sends_it_as_the_user(serve: Serve) -> None:
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
def test_all_kinds_of_replies_are_read(serve: Serve, message: dict[str, Any], text: str) -> None:
    assert replies(serve, completion(message=message)).text == text


def test_token_counts_that_are_not_reported_are_unknown(serve: Serve) -> None:
    content = completion()
    del content["usage"]
    reply = replies(serve, content)
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


@pytest.mark.parametrize("count", [-1, 10**400, 1e400, "7", True, None, 7.5])
def test_a_senseless_number_of_tokens_is_unknown_and_the_cost_is_guessed(serve: Serve, count: Any) -> None:
    content = completion()
    content["usage"] = {"prompt_tokens": count, "completion_tokens": 3}
    context = Context("judge", budget=Budget())
    server = serve(always(Answer(content)))
    model = build(server.url, context, price={"input": 1, "output": 1}, tokens_per_minute=10**6)
    assert model.ask(question()).input_tokens is None
    assert 0 < context.budget.cost < 1
    assert "the cost of 1 call is an estimate" in context.budget.describe()


def test_token_probabilities_are_read(serve: Serve) -> None:
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
def test_a_parameter_that_a_model_refuses_is_left_out_from_then_on(
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


def test_an_endpoint_that_enforces_no_schema_gets_it_in_the_prompt(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return refusal("response_format is not supported") if "response_format" in body else say_yes(number, body)

    server = serve(script)
    model = build(server.url)
    model.ask(question(schema=SCHEMA))
    model.ask(question("Another?", schema=SCHEMA))
    forms = [call.get("response_format", {}).get("type") for call in server.calls]
    assert forms == ["json_schema", "json_object", None, None]
    assert json.dumps(SCHEMA) in server.calls[-1]["messages"][-1]["content"]


def test_a_way_that_the_spec_requires_is_not_given_up(serve: Serve) -> None:
    server = serve(always(refusal("response_format is not supported")))
    assert "response_format is not supported" in fails(
        build(server.url, structured="json_schema"), question(schema=SCHEMA)
    )
    assert len(server.calls) == 1


def test_a_prompt_that_is_too_long_does_not_change_the_way_to_ask(serve: Serve) -> None:
    server = serve(
        always(refusal("prompt is too long: messages and response_format have 9000 tokens, 8192 are allowed"))
    )
    assert "use fewer or shorter contexts" in fails(build(server.url), question(schema=SCHEMA))
    assert len(server.calls) == 1


def test_keys_from_extra_are_never_left_out(serve: Serve) -> None:
    server = serve(always(refusal("temperature is not supported", param="temperature")))
    assert "temperature is not supported" in fails(build(server.url, extra={"temperature": 0.3}))
    assert len(server.calls) <= 2


def test_parallel_calls_learn_a_refused_parameter_together(serve: Serve) -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        is_refused = "temperature" in body
        return refusal("temperature is not supported with this model") if is_refused else say_yes(number, body)

    server = serve(script)
    model = build(server.url, retries=0)
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda number: model.ask(question(f"{number}?")).text, range(40)))
    assert texts == ["yes"] * 40
    assert sum("temperature" in call for call in server.calls) <= 8


@pytest.mark.parametrize(
    ("host", "model", "price"),
    [
        ("api.openai.com", "gpt-4o-mini", (0.15, 0.6)),
        ("API.openai.com", "gpt-4o-mini-2024-07-18", (0.15, 0.6)),
        ("api.anthropic.com", "claude-haiku-4-5-20251001", (1.0, 5.0)),
        ("api.openai.com", "gpt-4o-mini-tts", None),
        ("api.openai.com", "claude-haiku-4-5", None),
        ("localhost", "gpt-4o-mini", None),
        ("api.openai.com.invalid", "gpt-4o-mini", None),
    ],
)
def test_a_price_is_for_exactly_one_host_and_model(host: str, model: str, price: tuple[float, float] | None) -> None:
    assert find_price(host, model) == price


def test_the_price_list_has_a_date_and_its_sources() -> None:
    content = json.loads(Path(dialects.__file__).with_name("prices.json").read_text())
    assert date.fromisoformat(content["date"]) <= date.today()
    assert all(source.startswith("https://") for source in content["sources"])
    for models in content["hosts"].values():
        for sent, replied in models.values():
            assert 0 < sent < replied < 1000
