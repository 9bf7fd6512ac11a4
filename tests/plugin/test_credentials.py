from __future__ import annotations

import pytest

from rageval_spec.plugin.credentials import hide_credentials, is_credential

LONG = "4f9aB71cE0d25Qz8Lm3xT6vR"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sk-proj-abcdef0123456789abcdef", ""),
        ("AKIAIOSFODNN7EXAMPLE", ""),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123", ""),
        ("https://host/x?key=sk-abcdef0123456789abcdef", "url"),
        (LONG, "api_key"),
        (f"Bearer {LONG}", "Authorization"),
        (LONG, "X-Api-Key"),
        (LONG, "X-Key"),
        (LONG, "key"),
        (f"https://host/x?q=1&key={LONG}", "url"),
        (f"https://host/x?code={LONG}&q=1", "base_url"),
    ],
)
def test_keys_in_plain_text_are_recognised(text: str, name: str) -> None:
    assert is_credential(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sk-x", "api_key"),
        ("ollama", "api_key"),
        (LONG, "model"),
        ("$.usage.prompt_tokens", "input_tokens"),
        ("sentence-transformers/all-MiniLM-L6-v2", "model"),
        ("unicode-word-boundaries-v2", "tokenizer"),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "api_key"),
        ("the task-based-evaluation-of-systems", "description"),
        ("https://host/x?key=short&version=2024-06-01-preview", "url"),
        (f"https://host/x?q={LONG}", "url"),
        (LONG, "primary_key"),
    ],
)
def test_other_values_are_not_taken_for_keys(text: str, name: str) -> None:
    assert not is_credential(text, name)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("base_url: http://me:hidden@host/v1", "base_url: http://*********@host/v1"),
        ("base_url: http://me:hid/den@host/v1", "base_url: http://**********@host/v1"),
        ("url: http://host/x?api_key=hidden&q=1", "url: http://host/x?api_key=******&q=1"),
        ("m: {api_key: hidden-and-long, model: x}", "m: {api_key: ***************, model: x}"),
        ('Authorization: "Bearer hidden-and-long"', 'Authorization: "Bearer ***************"'),
        ("note: sk-abcdef0123456789abcdef", "note: *************************"),
        ("api_key: ${secret:OPENAI_API_KEY}", "api_key: ${secret:OPENAI_API_KEY}"),
        ("input_tokens: $.usage.prompt_tokens", "input_tokens: $.usage.prompt_tokens"),
        ("max_tokens: 1234567890", "max_tokens: 1234567890"),
    ],
)
def test_credentials_in_a_line_are_hidden_without_shifting_columns(line: str, shown: str) -> None:
    assert hide_credentials(line) == shown
    assert len(shown) == len(line)


@pytest.mark.parametrize("part", ["://", "a-", "token-", "eyJaaaaaaaaaaa-", "?api_key", "password: ", "https://a "])
def test_a_line_that_only_begins_to_be_a_credential_again_and_again_is_looked_through(part: str) -> None:
    line = part * (100_000 // len(part))
    assert len(hide_credentials(line)) == len(line)
    assert hide_credentials(f"{line} https://me:hidden@host").endswith(" https://*********@host")


def test_a_metric_that_is_called_token_f1_is_no_secret() -> None:
    assert hide_credentials("bands: {token_f1: published}") == "bands: {token_f1: published}"
    assert hide_credentials("{token: published}") == "{token: *********}"
