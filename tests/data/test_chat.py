""""""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.chat import (
    AskedModel,
    CallError,
    ChatRequest,
    InterruptedCallError,
    LimitError,
    Message,
    ReplyCounts,
    UnfinishedError,
    compare_models,
)

REQUEST = ChatRequest((Message("system", "Be brief."), Message("user", "Why?")), {"type": "object"}, 100)


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("user", "Why?"),)},
        {"schema": None},
        {"max_tokens": 99},
        {"logprobs": True},
        {"repeat": 1},
    ],
)
def test_every_difference_in_a_request_changes_its_digest(change: dict[str, Any]) -> None:
    assert replace(REQUEST).digest == REQUEST.digest
    assert replace(REQUEST, **change).digest != REQUEST.digest


def test_the_digest_is_the_same_in_every_version() -> None:
    """Replies are stored under the digest: if it changed, all of them would have to be paid for again."""
    assert REQUEST.digest.hex() == "0c51ba4180874376d3ce161f1fe3232c0531ba970e2f1c9ba3598fdec3469833"


def test_all_messages_count() -> None:
    assert REQUEST.size == len("Be brief.") + len("Why?")


def test_a_stopped_evaluation_is_not_an_error_of_the_model() -> None:
    assert issubclass(LimitError, UnfinishedError)
    assert issubclass(InterruptedCallError, UnfinishedError)
    assert not issubclass(CallError, UnfinishedError)


def test_a_call_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(CallError("refused", is_temporary=False)))
    assert (str(error), error.is_temporary) == ("refused", False)


def test_a_question_counts_by_its_last_reply() -> None:
    assert ReplyCounts.of(1, is_read=True) == ReplyCounts(first=1)
    assert ReplyCounts.of(3, is_read=True) == ReplyCounts(later=1, repeats=2)
    assert ReplyCounts.of(3, is_read=False) == ReplyCounts(never=1, repeats=2)
    total = ReplyCounts.of(1, is_read=True) + ReplyCounts.of(2, is_read=True) + ReplyCounts.of(3, is_read=False)
    assert (total.questions, total) == (3, ReplyCounts(1, 1, 1, 3))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (ReplyCounts(first=1), "readable replies to 100% of 1 question at first"),
        (
            ReplyCounts(39, 1, 0, 1),
            "readable replies to 97.5% of 40 questions at first, 2.5% after asking again (1 more call)",
        ),
        (
            ReplyCounts(99_999, 0, 1, 2),
            "readable replies to 99.9% of 100,000 questions at first, 0.1% never (2 more calls)",
        ),
        (
            ReplyCounts(0, 1, 1, 3),
            "readable replies to 0% of 2 questions at first, 50% after asking again, 50% never (3 more calls)",
        ),
    ],
)
def test_shares_are_never_rounded_to_all_or_nothing(counts: ReplyCounts, text: str) -> None:
    assert str(counts) == text


def test_a_model_is_described_with_its_seconds_a_call() -> None:
    asked = AskedModel("fast", "http://a", 40, 33.6, ReplyCounts(39, 1, 0, 1))
    assert str(asked) == (
        "readable replies to 97.5% of 40 questions at first, 2.5% after asking again (1 more call); 0.84 seconds a call"
    )
    assert str(AskedModel("new", "", 0, 0.0, ReplyCounts())).endswith("0 seconds a call")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4o", "GPT-4o"),
        ("gpt-4o", "gpt_4o"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-turbo-preview", "gpt-4-turbo-2024-04-09"),
        ("claude-3-5-sonnet-20240620", "claude-3.5-sonnet"),
        ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "anthropic/claude-3.5-sonnet"),
        ("claude-3-opus@20240229", "claude-3-opus-latest"),
        ("gemini-1.5-pro-002", "models/gemini-1.5-pro"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("llama3.1:8b", "meta-llama/Meta-Llama-3.1-8B-Instruct"),
        ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b"),
        ("mistral-large-2411", "mistral-large-latest"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5:7b"),
        ("my-own-model", "My-Own-Model"),
        ("m", "M"),
    ],
)
def test_names_of_one_model(one: str, other: str) -> None:
    assert compare_models(one, other) == compare_models(other, one) == "same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-4o", "gpt-4"),
        ("gpt-4.1", "gpt-4"),
        ("o3-mini", "gpt-5"),
        ("chatgpt-4o-latest", "gpt-4-turbo"),
        ("llama3.1:8b", "llama3.1:70b"),
        ("claude-3-5-sonnet", "claude-3-5-haiku-20241022"),
        ("mixtral:8x7b", "mistral-small"),
        ("gemini-1.5-pro", "gemini-1.5-flash"),
    ],
)
def test_models_of_one_family(one: str, other: str) -> None:
    assert compare_models(one, other) == compare_models(other, one) == "family"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gpt-4o", "claude-3-5-sonnet"),
        ("gemini-1.5-pro", "gemma-2-9b"),
        ("support-bot-1", "support-judge-1"),
        ("my-model", "my-other-model"),
        ("", ""),
        ("latest", "instruct"),
        ("phi-4", "granite-4"),
    ],
)
def test_unrelated_models(one: str, other: str) -> None:
    assert compare_models(one, other) is None
