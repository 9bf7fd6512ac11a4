"""Finds the shards of an evaluation in folders, and checks that they are all there and belong together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from rageval_spec.data.chat import LimitError
from rageval_spec.data.json_documents import FORMAT_VERSION
from rageval_spec.errors import DataError, UsageError
from rageval_spec.kernels import version
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.execution.shard_files import MANIFEST, PlannedStep, ShardManifest, read_manifest, read_shard
from rageval_spec.pipeline.execution.shards import map_shards
from rageval_spec.pipeline.planning.question_shards import MOST_SHARDS
from rageval_spec.plugin.budget import WHOLE, Shard
from rageval_spec.plugin.report import RESULTS_FILES
from rageval_spec.store.store import hold_tables
from rageval_spec.wording import agree, count_noun, list_names, list_some

_DEEPEST = 4
_MOST_NAMED = 10
_SHARED = ("open", "model", "judge", "retrieve", "answer", "evaluate")
"""The kinds of steps that shards have in common; the others are made when they are put together."""


class FoundShard(NamedTuple):
    """A shard's folder, and what it says of itself."""

    folder: Path
    manifest: ShardManifest

    def __str__(self) -> str:
        return f"{self.folder} (shard {Shard(self.manifest.shard, self.manifest.total)})"


def name_folder(shard: Shard) -> str:
    """The name of a shard's folder in the results folder."""
    return f"shard-{shard.number}-of-{shard.total}"


def find_shards(places: Sequence[Path]) -> list[FoundShard]:
    """The shards in some folders, or in folders within them, by their numbers.

    Raises:
        UsageError: there is no such folder, or no shard in it.
        DataError: a shard is damaged, incomplete or missing, there twice, or of another number of shards.
    """
    named = [place for place in places if place.is_dir() or not place.exists()] or places  # `*` names files, too
    folders = dict.fromkeys(_shorten(folder.resolve()) for place in named for folder in _list_folders(place))
    found = [FoundShard(folder, read_manifest(folder)) for folder in folders]
    total = found[0].manifest.total
    by_number: dict[int, FoundShard] = {}
    for one in found:
        manifest = one.manifest
        if manifest.total != total:
            raise DataError(f"{one} and {found[0]} are of two different numbers of shards; name those of one")
        if not 1 <= manifest.shard <= manifest.total <= MOST_SHARDS:
            raise DataError(f"{one} is damaged: there is no such shard; run the shard again")
        if manifest.shard in by_number:
            told = f"{by_number[manifest.shard]} and {one.folder} are the same shard"
            raise DataError(f"{told}; leave out the one that is out of date")
        by_number[manifest.shard] = one
    if incomplete := [one for one in found if not one.manifest.is_complete]:
        numbers = [one.manifest.shard for one in incomplete]
        told = f"{list_names([*map(str, incomplete[:_MOST_NAMED])])} {agree(len(numbers), 'was')} not finished"
        raise DataError(f"{told}; run {_advise(found[0].manifest, numbers)}")
    if missing := [number for number in range(1, total + 1) if number not in by_number]:
        told = f"{len(missing)} of {count_noun(total, 'shard')} {agree(len(missing), 'is')} missing"
        raise DataError(f"{told}; run {_advise(found[0].manifest, missing)}, or name the folder that has it")
    return [by_number[number] for number in range(1, total + 1)]


def _advise(manifest: ShardManifest, numbers: Sequence[int]) -> str:
    """The commands that make shards: `rageval-spec run spec.yaml --shard 3/8, 5/8 and 7/8`."""
    shards = [str(Shard(number, manifest.total)) for number in numbers[:_MOST_NAMED]]
    if more := len(numbers) - len(shards):
        shards.append(f"{more} more")
    return f"rageval-spec run {quote(manifest.spec)} --shard {list_names(shards)}"


def _shorten(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _list_folders(place: Path) -> list[Path]:
    """The folders of shards in a place. What `download-artifact` unpacks lies a few folders deep."""
    if not place.exists():
        raise UsageError(f"{place}: there is no such folder")
    if not place.is_dir():
        raise UsageError(f"{place} is a file; name the folders of the shards, or the folder that they are in")
    patterns = ("*/" * depth + MANIFEST for depth in range(_DEEPEST + 1))
    found = [path.parent for pattern in patterns for path in sorted(place.glob(pattern))]
    if found:
        return found
    if (place / RESULTS_FILES[0]).is_file():
        told = f"{place} has the results of a whole evaluation, which is no shard"
        raise UsageError(f"{told}; make shards with: rageval-spec run spec.yaml --shard 1/4, and 2/4, 3/4 and 4/4")
    inside = [path.name for path in sorted(place.iterdir())]
    seen = f"it has {list_some(inside, _MOST_NAMED)}" if inside else "it is empty"
    raise UsageError(f"{place} has no shard, nor a folder with one: {seen}; a shard is a folder with a {MANIFEST}")


def describe_shard(work: Work, shard: Shard) -> ShardManifest:
    """What a shard says of itself before it is computed."""
    steps = [step for step in work.plan.steps if step.kind in _SHARED]
    return ShardManifest(
        format_version=FORMAT_VERSION,
        shard=shard.number,
        total=shard.total,
        is_complete=False,
        name=work.spec.name,
        spec=work.spec.path,
        version=version(),
        seed=work.spec.statistics.seed,
        plan=[PlannedStep(step.title, step.key, _digest(step.content)) for step in steps],
    )


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def take_shards(work: Work, found: Sequence[FoundShard]) -> Work:
    """Let an execution take what shards computed in place of computing it, and count what they spent.

    Raises `DataError` if a shard is damaged, or of another evaluation. Runs that come from shards are not stored.
    """
    expected, loaded = describe_shard(work, WHOLE), []
    for one in found:
        fault = next(_find_differences(one.manifest, expected, found[0].manifest), None)
        if fault is not None:
            raise DataError(f"{one} is of another evaluation: {fault}")
        shard, usage = read_shard(*one)
        loaded.append(shard)
        work.budget.usage.add(usage)
        work.budget.add(one.manifest.spent)
        if one.manifest.stopped is not None:
            work.budget.stopped = LimitError(one.manifest.stopped)
    work.budget.check_errors()
    return replace(work, mapping=map_shards(loaded), store=hold_tables(work.store))


def _find_differences(one: ShardManifest, expected: ShardManifest, first: ShardManifest) -> Iterator[str]:
    again = "run the shard again"
    if one.version != expected.version:
        yield f"version {one.version} of rageval-spec made it, and this is {expected.version}; {again}"
    if (one.limit, one.only, one.queries) != (first.limit, first.only, first.queries):
        yield f"it was made with another --limit or --only than shard {first.shard}; {again}"
    if one.seed != expected.seed:
        yield f"its statistics.seed is {one.seed}, and that of the spec is {expected.seed}; {again}"
    if None not in (one.commit, first.commit) and one.commit != first.commit:
        yield f"it was made at the commit {one.commit}, and shard {first.shard} at {first.commit}; {again}"
    theirs, ours = ({step.title: step for step in of.plan} for of in (one, expected))
    if lone := next((title for title in (*ours, *theirs) if title not in theirs or title not in ours), None):
        whose = "the spec" if lone in ours else "the shard"
        yield f"only {whose} has the step '{lone}'; name the spec, and write every --set, as for the shards"
    for title, step in ours.items():
        if theirs[title].settings != step.settings:
            yield f"the step '{title}' has other settings; name the spec, and write every --set, as for the shards"
        if theirs[title].key != step.key:
            yield f"the step '{title}' reads other files; {again} with the files that are here"
