"""Finds the shards of an evaluation in folders, and checks that they are all there and belong together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from rageval_spec.data.chat import LimitError
from rageval_spec.data.json_documents import FORMAT_VERSION
from rageval_spec.errors import DataError, UsageError
from rageval_spec.kernels import version
from rageval_spec.libraries import compile_later
from rageval_spec.pipeline.execution.runs import Work
from rageval_spec.pipeline.execution.shard_files import MANIFEST, PlannedStep, ShardManifest, read_manifest, read_shard
from rageval_spec.pipeline.execution.shards import map_shards
from rageval_spec.pipeline.planning.question_shards import MOST_SHARDS
from rageval_spec.plugin.budget import WHOLE, Shard
from rageval_spec.plugin.report import RESULTS_FILES, RESULTS_FOLDER
from rageval_spec.store.store import hold_tables
from rageval_spec.wording import list_names, list_some

_DEEPEST = 4
_MOST_NAMED = 10
_NAME = compile_later(r"shard-([0-9]{1,5})-of-([0-9]{1,5})")
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


def find_shards(places: Sequence[Path], spec: str | None = None, output: Path | None = None) -> list[FoundShard]:
    """The shards in some folders, or in folders within them, by their numbers.

    Messages name the `spec`, or else the one that the shards name. `output` is the folder for the results.

    Raises:
        UsageError: there is no such folder, or no shard in it; or it is the folder for the results, too.
        DataError: a shard is damaged, incomplete or missing, there twice, or of another number of shards.
    """
    named = [place for place in places if place.is_dir() or not place.exists()] or places  # `*` names files, too
    folders = dict.fromkeys(_shorten(folder.resolve()) for place in named for folder in _list_folders(place))
    found = [_open(folder, spec) for folder in folders]
    first = found[0]
    spec = spec or _name_spec(first.manifest)
    total = first.manifest.total
    by_number: dict[int, FoundShard] = {}
    for one in found:
        manifest = one.manifest
        if output is not None and output.resolve() == one.folder.resolve():
            raise UsageError(f"-o {output} is the folder of a shard; write the results to another: -o {RESULTS_FOLDER}")
        if not 1 <= manifest.shard <= manifest.total <= MOST_SHARDS:
            raise DataError(f"{one} is damaged: there is no such shard; {advise_again(one, spec)}")
        if manifest.total != total:
            told = f"{one} is one of {manifest.total} shards, and {first} one of {total}"
            kept = _write_places([other for other in found if other.manifest.total == total])
            raise DataError(f"{told}; name only shards of one division: rageval-spec merge {quote(spec)} {kept}")
        if (other := by_number.get(manifest.shard)) is not None:
            older = min(one, other, key=lambda shard: shard.manifest.began)
            raise DataError(
                f"{other.folder} and {one.folder} are both shard {Shard(manifest.shard, total)}; "
                f"move {older.folder}{', the older,' if other.manifest.began != manifest.began else ''} elsewhere"
            )
        by_number[manifest.shard] = one
    if incomplete := next((one for one in found if not one.manifest.is_complete), None):
        raise DataError(f"{incomplete} is not finished; {advise_again(incomplete, spec, 'run it to its end')}")
    if missing := [number for number in range(1, total + 1) if number not in by_number]:
        listed = [str(Shard(number, total)) for number in missing[:_MOST_NAMED]]
        listed += [f"{len(missing) - len(listed)} more"] if len(missing) > len(listed) else []
        command = write_command(spec, Shard(missing[0], total), first.folder.parent, first.manifest)
        told, make = ("shard", "it:") if len(missing) == 1 else ("the shards", "each, as")
        raise DataError(f"{first.folder.parent} lacks {told} {list_names(listed)}; make {make} {command}")
    return [by_number[number] for number in range(1, total + 1)]


def _open(folder: Path, spec: str | None) -> FoundShard:
    """A shard's folder. If what it says of itself cannot be read, the folder's name says which shard it is."""
    found = _NAME.fullmatch(folder.name)
    if found is None:
        return FoundShard(folder, read_manifest(folder))
    command = write_command(spec or "spec.yaml", Shard(*map(int, found.groups())), folder.parent)
    return FoundShard(folder, read_manifest(folder, f"make the shard again: {command}"))


def _name_spec(manifest: ShardManifest) -> str:
    """The spec of a shard; of an absolute path, which is one of another machine, only the name."""
    return Path(manifest.spec).name if Path(manifest.spec).is_absolute() else manifest.spec


def advise_again(one: FoundShard, spec: str, what: str = "make it again", like: ShardManifest | None = None) -> str:
    """The command that makes a shard again, with the selection of its own or of another shard."""
    shard, folder = Shard(one.manifest.shard, one.manifest.total), one.folder
    parent = folder.parent if folder.name == name_folder(shard) else Path(RESULTS_FOLDER)
    replaced = "" if folder.name == name_folder(shard) else f", and put it in the place of {folder}"
    return f"{what}: {write_command(spec, shard, parent, like or one.manifest)}{replaced}"


def write_command(spec: str, shard: Shard, output: Path, like: ShardManifest | None = None) -> str:
    """`rageval-spec run spec.yaml --shard 3/8 --limit 20 -o parts`."""
    words = [quote(spec), "--shard", str(shard), *([] if like is None else _list_selection(like))]
    return " ".join(
        ["rageval-spec run", *words, *(["-o", quote(str(output))] if output != Path(RESULTS_FOLDER) else [])]
    )


def _write_places(found: Sequence[FoundShard]) -> str:
    """The folders of shards for a command line: `parts/shard-*-of-8`."""
    of = [(one.folder, name_folder(Shard(one.manifest.shard, one.manifest.total))) for one in found]
    places = [
        f"{quote(str(folder.parent))}/shard-*-of-{found[0].manifest.total}"
        if folder.name == name
        else quote(str(folder))
        for folder, name in of
    ]
    return " ".join(dict.fromkeys(places)).replace("./", "")


def _list_selection(manifest: ShardManifest) -> list[str]:
    """The options of a shard that say what part of the spec was evaluated."""
    limit = [] if manifest.limit is None else ["--limit", str(manifest.limit)]
    return limit + [word for name in manifest.only for word in ("--only", quote(name))]


def _shorten(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _list_folders(place: Path) -> list[Path]:
    """The folders of shards in a place. What `download-artifact` unpacks lies a few folders deep."""
    name = f"name the folder that `rageval-spec run --shard` wrote, such as {RESULTS_FOLDER}"
    if not place.exists():
        raise UsageError(f"{place}: there is no such folder; {name}")
    if not place.is_dir():
        raise UsageError(f"{place} is a file; name its folder: {place.parent}")
    patterns = ("*/" * depth + MANIFEST for depth in range(_DEEPEST + 1))
    found = [path.parent for pattern in patterns for path in sorted(place.glob(pattern))]
    if found:
        return found
    if (place / RESULTS_FILES[0]).is_file():
        told = f"{place} has the results of a whole evaluation, which need no merge"
        raise UsageError(f"{told}; show them: rageval-spec show {quote(str(place))}")
    inside = [path.name for path in sorted(place.iterdir())]
    seen = f"has no shard, only {list_some(inside, _MOST_NAMED)}" if inside else "is empty"
    raise UsageError(f"{place} {seen}; {name}")


def describe_shard(work: Work, shard: Shard) -> ShardManifest:
    """What a shard says of itself before it is computed."""
    steps = [step for step in work.plan.steps if step.kind in _SHARED]
    return ShardManifest(
        format_version=FORMAT_VERSION,
        shard=shard.number,
        total=shard.total,
        is_complete=False,
        name=work.spec.name,
        spec=str(_shorten(Path(work.spec.path).absolute())),
        version=version(),
        seed=work.spec.statistics.seed,
        plan=[PlannedStep(step.title, step.key, _digest(step.content)) for step in steps],
        models=sorted(work.spec.models),
    )


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def take_shards(work: Work, found: Sequence[FoundShard]) -> Work:
    """Let an execution take what shards computed in place of computing it, and count what they spent.

    Raises `DataError` if a shard is damaged, or of another evaluation. Runs that come from shards are not stored.
    """
    expected, loaded = describe_shard(work, WHOLE), []
    _check_shards(found, expected)
    for one in found:
        shard, usage = read_shard(*one, advise_again(one, expected.spec, "make the shard again"))
        loaded.append(shard)
        work.budget.usage.add(usage)
        work.budget.add(one.manifest.spent)
        if one.manifest.stopped is not None:
            work.budget.stopped = LimitError(one.manifest.stopped)
    work.budget.check_errors()
    return replace(work, mapping=map_shards(loaded), store=hold_tables(work.store))


def _check_shards(found: Sequence[FoundShard], expected: ShardManifest) -> None:
    """Raise `DataError` if shards are of another version, selection or commit than the first, or than the spec.

    A shard that differs from the others must be made again. If all are alike, they are of another spec.
    """
    first = found[0]
    for one in found:
        theirs = one.manifest
        again = advise_again(one, expected.spec, like=first.manifest)
        if theirs.version != expected.version:
            told = f"is of version {theirs.version} of rageval-spec, and this is {expected.version}"
            raise DataError(f"{one} {told}; {again}")
        if (theirs.limit, theirs.only, theirs.queries) != (
            first.manifest.limit,
            first.manifest.only,
            first.manifest.queries,
        ):
            options = [" ".join(_list_selection(of)) or "no --limit or --only" for of in (theirs, first.manifest)]
            raise DataError(f"{one} was made with {options[0]}, and {first} with {options[1]}; {again}")
        if None not in (theirs.commit, first.manifest.commit) and theirs.commit != first.manifest.commit:
            told = f"was made at the commit {theirs.commit}, and {first} at {first.manifest.commit}"
            raise DataError(f"{one} {told}; {again}")
    faulty = [(one, fault) for one in found if (fault := _find_difference(one.manifest, expected)) is not None]
    if not faulty:
        return
    one, fault = faulty[0]
    if len(faulty) < len(found):
        raise DataError(f"{one} is of another evaluation: {fault}; {advise_again(one, expected.spec)}")
    merge = f"rageval-spec merge {{}} {_write_places(found)}"
    raise DataError(
        f"{one} is of another evaluation: {fault}; {_advise_spec(one.manifest, expected, merge, one.folder.parent)}"
    )


def _advise_spec(one: ShardManifest, expected: ShardManifest, merge: str, output: Path) -> str:
    """What to write if all shards are of another spec than the one that was read."""
    if Path(one.spec).name != Path(expected.spec).name:
        return f"name the spec of the shards: {merge.format(quote(_name_spec(one)))}"
    same = merge.format(quote(expected.spec))
    if one.seed != expected.seed:
        return f"write: {same} --set statistics.seed={one.seed}"
    if [(step.title, step.settings) for step in one.plan] != [(step.title, step.settings) for step in expected.plan]:
        return f"write the same --set options as for the shards: {same} --set PATH=VALUE"
    shard = Shard(one.shard, one.total)
    return f"make all shards again from the files that are here, as {write_command(expected.spec, shard, output, one)}"


def _find_difference(one: ShardManifest, expected: ShardManifest) -> str | None:
    """How the plan of a shard differs from that of the spec; None if it does not."""
    if one.seed != expected.seed:
        return f"its statistics.seed is {one.seed}, and that of the spec is {expected.seed}"
    if one.models and one.models != expected.models:
        told = "what a block without 'model:' gets depends on what is installed, so write 'model: NAME' into the spec"
        used = [list_names(of.models) or "none" for of in (one, expected)]
        return f"its models are {used[0]}, those of the spec {used[1]}; {told}"
    theirs, ours = ({step.title: step for step in of.plan} for of in (one, expected))
    if lone := next((title for title in (*ours, *theirs) if title not in theirs or title not in ours), None):
        return f"only {'the spec' if lone in ours else 'the shard'} has the step '{lone}'"
    other = next((title for title, step in ours.items() if theirs[title].settings != step.settings), None)
    if other is not None:
        return f"the step '{other}' has other settings"
    return next(
        (f"the step '{one}' reads other files" for one, step in ours.items() if theirs[one].key != step.key), None
    )
