"""The README is short, and begins with the commands of a clone. Its blocks are executed by docs/check_blocks.py."""

from __future__ import annotations

from pathlib import Path

TEXT = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150


def test_the_first_commands_are_those_of_a_clone() -> None:
    first = TEXT.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert first == ["pip install uv && uv run rageval-spec run specs/quickstart.yaml", "uv run pytest -n auto"]
    assert "\nuvx rageval-spec demo " in TEXT[: TEXT.index("## Evaluate your own system")]
