"""A redactor finds secrets in every form in which servers echo them."""

from __future__ import annotations

import html
import json
import pickle
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rageval_spec.plugin.secrets import MARK, Redactor, Secret, hide_credentials, is_credential


class Holder(BaseModel):
    key: Secret


def test_a_secret_is_shown_as_it_is_written_and_only_revealed_on_request() -> None:
    secret = Secret("sk-123", "${secret:KEY}")
    assert (str(secret), repr(secret), f"{secret}") == ("${secret:KEY}", "Secret('${secret:KEY}')", "${secret:KEY}")
    assert secret.reveal() == "sk-123"


def test_a_text_written_out_in_the_spec_is_masked() -> None:
    holder = Holder(key="sk-123")
    assert "sk-123" not in f"{holder!r} {holder.model_dump_json()} {json.dumps(holder.model_dump(mode='json'))}"
    assert holder.key.reveal() == "sk-123"


def test_secrets_are_equal_if_their_texts_and_spellings_are() -> None:
    assert Secret("a", "x") == Secret("a", "x") != Secret("b", "x")
    assert Secret("a", "x") != Secret("a", "y")
    assert Secret("a", "x") != "a"
    assert len({Secret("a", "x"), Secret("a", "x")}) == 1
    assert pickle.loads(pickle.dumps(Secret("a", "x"))) == Secret("a", "x")


def test_a_node_fills_secrets_in_and_dumps_how_they_are_written() -> None:
    marked = f"{MARK}${{secret:KEY}}"
    holder = Holder.model_validate({"key": marked}, context={marked: "abc"})
    assert holder.key.reveal() == "abc"
    assert holder.model_dump(mode="json") == {"key": "${secret:KEY}"}
    assert Holder.model_json_schema()["properties"]["key"]["type"] == "string"


SECRETS = ["sk-very-secret-4711", 'p@ss/w"rd+é\\9&<x>', "Bearer sk-very-secret-4711", "0123456789abcdef" * 4]

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "base64": lambda secret: b64encode(secret.encode()).decode(),
    "base64 without padding": lambda secret: b64encode(secret.encode()).decode().rstrip("="),
    "base64 for URLs": lambda secret: urlsafe_b64encode(secret.encode()).decode(),
    "base64 of user and password": lambda secret: b64encode(f"user:{secret}".encode()).decode(),
    "base64 in the middle": lambda secret: b64encode(f"ab{secret}cd".encode()).decode(),
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON in JSON's characters": lambda secret: "".join(f"\\u{ord(character):04x}" for character in secret),
    "JSON with some escapes": lambda secret: f"\\u{ord(secret[0]):04X}{json.dumps(secret[1:])[1:-1]}",
    "URL": lambda secret: quote(secret, safe=""),
    "URL in lower case": lambda secret: quote(secret, safe="").replace("%2F", "%2f"),
    "form": quote_plus,
    "HTML": html.escape,
    "hex": lambda secret: secret.encode().hex(),
    "hex in capitals": lambda secret: secret.encode().hex().upper(),
    "capitals": str.upper,
    "lower case": str.lower,
    "HTML in numbers": lambda secret: "".join(f"&#{ord(character)};" for character in secret),
    "HTML in hex": lambda secret: "".join(f"&#x{ord(character):02X};" for character in secret),
    "every character as in URLs": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "cut at its end": lambda secret: secret[:-1],
    "half of it": lambda secret: secret[: len(secret) // 2 + 1],
    "Python": lambda secret: repr(secret)[1:-1],
}


def bare(secret: str) -> str:
    return secret.removeprefix("Bearer ")


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_masked_in_every_form(secret: str, form: Callable[[str], str]) -> None:
    redactor = Redactor([secret])
    text = f"the key {form(bare(secret))} is wrong, é"
    for redacted in (redactor.redact(text), redactor.redact_bytes(text.encode()).decode()):
        assert "***" in redacted
        assert redacted.startswith("the key ")
        assert redacted.endswith(" is wrong, é")
        assert form(bare(secret))[:12] not in redacted.replace("*", "")


@pytest.mark.parametrize("text", ["", "nothing to hide", "Bearer of bad news", "a sk- prefix alone", "véry\udcff"])
def test_other_texts_stay_the_same_objects(text: str) -> None:
    redactor = Redactor(SECRETS)
    assert redactor.redact(text) is text
    content = text.encode("utf-8", "surrogateescape")
    assert redactor.redact_bytes(content) is content


def test_words_that_are_too_short_are_not_secrets() -> None:
    assert Redactor(["abc", "", "  "]).redact("abc of it") == "abc of it"


@given(st.text(min_size=8, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    redacted = Redactor([secret]).redact(before + secret + after)
    if (
        len(secret) >= 4
        and secret not in "***"
        and not secret.lower().startswith(("bearer ", "basic ", "token ", "apikey "))
    ):
        assert secret not in redacted or secret in before.replace(secret, "") + "***" + after


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
