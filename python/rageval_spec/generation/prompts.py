"""The prompts that write and check questions: templates in files, and what they say of each type of question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rageval_spec.judging.prompts import FOLDER as JUDGING
from rageval_spec.judging.prompts import Prompt, load_prompt

FOLDER = Path(__file__).parent / "prompts"
WORDINGS = "wordings.toml"
NAMES = ("system", "draft", "unanswerable", "check", "closed_book", "same")
JUDGE = "judge"
"""The rules of whoever checks questions: those of the product's judges."""


def render(name: str, **variables: str | int) -> str:
    """A prompt of this package with its variables. Untrusted texts among them must be fenced already."""
    return load(name).render(**variables)


@cache
def load(name: str) -> Prompt:
    """A prompt by its name in `NAMES`, or the rules of judges."""
    path = JUDGING / "system.jinja" if name == JUDGE else FOLDER / f"{name}.jinja"
    return load_prompt(name, path, path.name, is_own=True)


@cache
def read_wordings() -> Mapping[str, Mapping[str, str]]:
    """What the prompts say of each of the `types`, `difficulties` and `styles`, by its name."""
    import tomllib

    wordings: dict[str, dict[str, str]] = tomllib.loads((FOLDER / WORDINGS).read_text("utf-8"))
    return wordings


def describe_prompts() -> dict[str, Any]:
    """The version and the sha256 of every prompt by name, and the sha256 of the wordings."""
    digest = hashlib.sha256((FOLDER / WORDINGS).read_bytes()).hexdigest()
    every = {name: load(name) for name in (*NAMES, JUDGE)}
    prompts: dict[str, Any] = {name: {"version": one.version, "sha256": one.digest} for name, one in every.items()}
    return prompts | {"wordings": {"sha256": digest}}
