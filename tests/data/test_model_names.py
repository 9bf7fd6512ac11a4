from __future__ import annotations

import pytest

from rageval_spec.data.model_names import compare_models


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
