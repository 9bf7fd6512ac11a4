from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rageval_spec.commands.options import read_age
from rageval_spec.commands.store import describe_store, find_keys, prune_store, read_size
from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, run
from rageval_spec.wording import format_size
from tests.store.stores import OLD_MODEL, OLD_RUN, RUN, fill_store
from tests.tiny import write_spec


def test_a_store_is_described_by_kind(tmp_path: Path) -> None:
    fill_store(tmp_path)
    text = describe_store(tmp_path)
    assert "runs of retrievers: 2, " in text
    assert "last used 10 days ago  old on golden" in text
    assert f"{OLD_MODEL[:12]}  5.1 kB  last used 10 days ago  5 replies" in text
    content = json.loads(describe_store(tmp_path, "json"))
    assert content["bytes"] == sum(entry["size"] for entry in content["entries"])
    assert {entry["kind"] for entry in content["entries"]} == {"run", "replies"}


def test_a_missing_store_is_reported_as_empty(tmp_path: Path) -> None:
    assert describe_store(tmp_path / "none") == f"{tmp_path / 'none'}: nothing is stored\n"


def test_a_dry_run_lists_the_same_and_removes_nothing(tmp_path: Path) -> None:
    fill_store(tmp_path)
    planned = prune_store(tmp_path, older_than="5d", dry_run=True)
    assert "would remove 2 entries, " in planned
    assert OLD_RUN[:12] in planned
    assert (tmp_path / "tables" / OLD_RUN).is_dir()
    done = prune_store(tmp_path, older_than="5d")
    assert done == planned.replace("would remove", "removed")
    assert not (tmp_path / "tables" / OLD_RUN).exists()
    assert (tmp_path / "tables" / RUN).is_dir()


def test_unused_by_keeps_what_the_spec_uses(tmp_path: Path) -> None:
    used = write_spec(tmp_path, "used.yaml", systems={"bm25": {"use": "bm25"}})
    unused = write_spec(tmp_path, "unused.yaml", systems={"bm25": {"use": "bm25", "k1": 0.5}})
    for path in (used, unused):
        run(path, Options(output=tmp_path / "out"))
    store = tmp_path / ".rageval" / "store"
    assert len(list((store / "tables").iterdir())) == 2
    assert "would remove 0 entries" in prune_store(store, unused_by=[used, unused], dry_run=True)
    assert "removed 1 entry" in prune_store(store, unused_by=[used])
    (left,) = (store / "tables").iterdir()
    assert left.name in find_keys([used], store)
    assert left.name not in find_keys([unused], store)


def test_without_a_rule_nothing_is_removed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose what to remove"):
        prune_store(tmp_path)


@pytest.mark.parametrize(("text", "seconds"), [("30d", 2_592_000), ("12h", 43_200), ("1.5h", 5400), ("2 w", 1_209_600)])
def test_ages_are_read(text: str, seconds: float) -> None:
    assert read_age(text) == seconds


@pytest.mark.parametrize(("text", "size"), [("2GB", 2_000_000_000), ("500 MB", 500_000_000), ("0", 0), ("1.5kB", 1500)])
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize(
    ("read", "text", "wanted"),
    [
        (read_age, "30", "--older-than 30 is not an age; write 30d"),
        (read_age, "a month", "not an age"),
        (read_size, "2 gigs", "--max-size 2 gigs is not a size; write 500MB or 2GB"),
        (read_size, "-1MB", "not a size"),
    ],
)
def test_a_wrong_age_or_size_says_what_to_write(read: Callable[[str], object], text: str, wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        read(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1500, "1.5 kB"), (2_340_000_000, "2.3 GB")]
)
def test_sizes_are_shown_in_a_fitting_unit(size: int, text: str) -> None:
    assert format_size(size) == text
