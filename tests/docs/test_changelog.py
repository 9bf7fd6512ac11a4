"""CHANGELOG.md has the form of Keep a Changelog 1.1.0; its newest version, once one is released, is the package's."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise
from pathlib import Path

import rageval_spec

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
VERSION = re.compile(r"## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})")
HEADS = [line for line in LINES if line.startswith("## ")]


def test_unreleased_comes_first_and_versions_descend() -> None:
    assert LINES[0] == "# Changelog"
    assert HEADS[0] == "## [Unreleased]"
    found = [VERSION.fullmatch(head) for head in HEADS[1:]]
    assert all(found)
    versions = [tuple(map(int, match[1].split("."))) for match in found if match]
    days = [date.fromisoformat(match[2]) for match in found if match]
    assert all(newer > older for newer, older in pairwise(versions))
    assert all(newer >= older for newer, older in pairwise(days))


def test_the_newest_version_is_the_packages() -> None:
    versions = [match[1] for match in map(VERSION.fullmatch, HEADS) if match]
    assert versions[:1] in ([], [rageval_spec.__version__])


def test_changes_are_bullets_under_the_known_kinds_in_their_order() -> None:
    seen: list[str] = []
    for number, line in enumerate(LINES[LINES.index(HEADS[0]) :], LINES.index(HEADS[0]) + 1):
        if line.startswith("## "):
            seen = []
        elif line.startswith("### "):
            kind = line.removeprefix("### ")
            assert kind in KINDS, f"line {number}"
            assert not seen or KINDS.index(kind) > KINDS.index(seen[-1]), f"line {number}"
            seen.append(kind)
        else:
            assert not line or (seen and line.startswith(("- ", "  "))), f"line {number}"
