"""A redactor finds secrets in every form in which servers echo them."""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.plugin.redaction import Redactor

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
