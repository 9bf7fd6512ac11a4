"""`store info` and `store prune`: show what is kept between evaluations, or remove it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import Front
from rageval_spec.commands.options import read_age
from rageval_spec.diagnostics import dump_visible, make_visible
from rageval_spec.errors import PASSED, UsageError
from rageval_spec.wording import count_noun, format_size

if TYPE_CHECKING:
    from rageval_spec.store.inventory import StoreEntry


_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_STEPS = (("day", 86_400), ("hour", 3600), ("minute", 60))
_SHOWN_KEY = 12


def describe_store(folder: Path, form: Literal["text", "json"] = "text") -> str:
    """What a store holds: one line for each kind, each run, and each model or system that replied."""
    from rageval_spec.store.inventory import KINDS, list_entries

    entries = list_entries(folder)
    if form == "json":
        return dump_visible(
            {"store": str(folder), "bytes": _add_up(entries), "entries": [asdict(entry) for entry in entries]}
        )
    if not entries:
        return f"{folder}: nothing is stored\n"
    lines = [f"{folder}: {format_size(_add_up(entries))}"]
    for kind, what in KINDS.items():
        if some := [entry for entry in entries if entry.kind == kind]:
            count = sum(entry.count for entry in some)
            lines += ["", f"{what}: {count:,}, {format_size(_add_up(some))}"]
            lines += _list_lines(some) if kind != "digests" else []
    return "\n".join(lines) + "\n"


def prune_store(
    folder: Path,
    older_than: str | None = None,
    max_size: str | None = None,
    unused_by: Sequence[Path] = (),
    *,
    answers: bool = False,
    dry_run: bool = False,
) -> str:
    """Remove from a store what the options select. Returns one line for each entry removed."""
    from rageval_spec.store.inventory import Rules, choose, list_entries, remove

    if older_than is None and max_size is None and not unused_by and not answers:
        raise UsageError("choose what to remove: --older-than 30d, --max-size 2GB, --unused-by SPEC, or --answers")
    rules = Rules(
        None if older_than is None else read_age(older_than),
        None if max_size is None else read_size(max_size),
        find_keys(unused_by, folder) if unused_by else None,
        answers,
    )
    chosen = choose(list_entries(folder), rules)
    removed = chosen if dry_run else remove(folder, chosen)
    verb = "would remove" if dry_run else "removed"
    summary = f"{verb} {count_noun(len(removed), 'entry', 'entries')}, {format_size(_add_up(removed))}"
    return "\n".join([*_list_lines(removed), summary]) + "\n"


def find_keys(specs: Iterable[Path], store: Path) -> set[str]:
    from rageval_spec.pipeline.planning.plan import make_plan
    from rageval_spec.pipeline.planning.spec_plugins import build_parts
    from rageval_spec.pipeline.planning.spec_selection import select
    from rageval_spec.spec import load
    from rageval_spec.store.store import FolderStore
    from rageval_spec.systems.shared.answering_system import AnsweringSystem

    keys: set[str] = set()
    for path in specs:
        spec, _ = select(load(path), ())
        opened = FolderStore(store)
        fingerprint = opened.fingerprint
        parts = build_parts(spec, answers=opened.answers, fingerprint=fingerprint)
        keys.update(step.key for step in make_plan(spec, parts, fingerprint).steps if step.stored)
        keys.update(key for dataset in parts.datasets.values() for key in dataset.stored_keys())
        systems = (*parts.systems.values(), *parts.sources.values())
        keys.update(key for one in parts.datasets.values() for each in systems for key in each.stored_keys(one.digest))
        keys.update(model.key for model in parts.asked_models.values())
        keys.update(system.key for system in parts.systems.values() if isinstance(system, AnsweringSystem))
    return keys


def read_size(text: str) -> int:
    """Convert `500MB`, `2GB` or `0` to bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|kB|KB|MB|GB|TB)?", text.strip())
    if found is None:
        raise UsageError(f"--max-size {make_visible(text)} is not a size; write 500MB or 2GB")
    return int(float(found[1]) * _BYTES[found[2] or "B"])


def _add_up(entries: Iterable[StoreEntry]) -> int:
    return sum(entry.size for entry in entries)


def _list_lines(entries: Sequence[StoreEntry]) -> Iterator[str]:
    from rageval_spec.store.inventory import KINDS

    sizes = [format_size(entry.size) for entry in entries]
    width = max(map(len, sizes), default=0)
    for entry, size in zip(entries, sizes, strict=True):
        ages = ((int((time.time() - entry.used) // seconds), noun) for noun, seconds in _STEPS)
        used = next((f"{count_noun(age, noun)} ago" for age, noun in ages if age >= 1), "just now")
        counted = {"replies": ("reply", "replies"), "answers": ("answer", "answers"), "vectors": ("vector", "vectors")}
        nouns = counted.get(entry.kind)
        count = f"  {count_noun(entry.count, *nouns)}" if nouns else ""
        title = f"  {make_visible(entry.title)}" if entry.title else ""
        key = make_visible(entry.key)[:_SHOWN_KEY] or KINDS[entry.kind]
        yield f"  {key:<{_SHOWN_KEY}}  {size:>{width}}  last used {used}{count}{title}"


@click.group(cls=Front)
def store() -> None:
    """Show or remove what is stored between evaluations.

    \b
    rageval-spec store info
    rageval-spec store prune --older-than 30d --dry-run
    """


@store.command()
@shared.store_folder_option
@shared.form_option
def info(folder: Path, form: Any) -> int:
    """List what a store holds and when each part was last used.

    \b
    rageval-spec store info
    rageval-spec store info --store project/.rageval/store --format json
    """
    console.write(describe_store(folder, form))
    return PASSED


@store.command()
@shared.store_folder_option
@click.option("--older-than", metavar="AGE", help="Remove what has not been used for this long: 30d, 12h, 2w.")
@click.option(
    "--max-size", metavar="SIZE",
    help="Remove the least recently used until the store is no larger than this: 500MB, 2GB.",
)  # fmt: skip
@click.option(
    "--unused-by", type=click.Path(path_type=Path), multiple=True, metavar="SPEC",
    help="Remove what the evaluation of this spec does not use. If repeated, remove what none of the specs uses.",
)  # fmt: skip
@click.option("--answers", is_flag=True, help="Remove all answers of systems. Replies and vectors of models stay.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
def prune(folder: Path, **rules: Any) -> int:
    """Remove runs, indexes, replies and answers from a store. Evaluations can keep using it meanwhile.

    \b
    rageval-spec store prune --older-than 30d --dry-run
    rageval-spec store prune --unused-by spec.yaml --unused-by nightly.yaml
    rageval-spec store prune --answers
    """
    console.write(prune_store(folder, **rules))
    return PASSED
