"""`rageval-spec status`: what there is in a folder, and the command to type next. It reads, and changes nothing."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from rageval_spec.commands import console
from rageval_spec.commands import options as shared
from rageval_spec.commands.console import OutputCommand
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import SpecError, dump_visible
from rageval_spec.errors import PASSED, RagevalError
from rageval_spec.wording import agree, count_noun, format_size, list_names

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.drawing.view import Block
    from rageval_spec.spec.blocks.spec_node import Spec

FORMAT_VERSION = 1
"""Of the JSON shape. Within a version, keys are only added."""
KINDS = ("specs", "results", "history", "baselines", "review", "store")
"""The headings, in their order."""
_MOST_FILES, _DEEPEST = 5_000, 2
"""How many files are looked at, and how many folders below the first."""
_MOST_BYTES, _MOST_OF_HEADER = 2_000_000, 4_000
"""A larger file is neither a spec nor a form that people fill in."""
_PARTS_OF_SPECS = (rb"(?m)^version\s*:", rb"(?m)^(datasets|systems|metrics|monitor)\s*:")
_KEPT = Path(".rageval")


class Found(NamedTuple):
    """Something in the folder: what it is of `KINDS`, its path, what it is in words, and whether that is a fault."""

    kind: str
    path: str
    told: str
    is_wrong: bool = False


class _Opened(NamedTuple):
    folder: Path
    time: float
    spec: Path | None
    evaluation: Evaluation


class Advice(NamedTuple):
    """What to type next and why; the lowest rank is the most urgent."""

    rank: int
    why: str
    command: str


@dataclass(slots=True)
class Status:
    """What was found in a folder. `is_partial` says that it has too many files to look at all of them."""

    found: list[Found] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    is_partial: bool = False

    def add(self, kind: str, path: Path | str, told: str, *, is_wrong: bool = False) -> None:
        self.found.append(Found(kind, str(path), told, is_wrong))

    def advise(self, rank: int, why: str, *command: str | Path) -> None:
        words = " ".join(shlex.quote(str(word)) for word in command)
        self.advice.append(Advice(rank, why, f"{console.name_program()} {words}"))


@click.command("status", cls=OutputCommand)
@click.argument("folder", default=Path(), type=click.Path(path_type=Path, exists=True, file_okay=False))
@shared.form_option
def status(folder: Path, form: str) -> int:
    """Show what is in this folder, and the command to type next.

    FOLDER is the current folder by default; the two levels below it are looked at, too. The command lists specs,
    results with failed gates, the history, baselines that are missing or can no longer be compared with, answers that
    nobody has labelled yet, and the size of the store. It names files that cannot be read. It changes nothing, and
    asks no server.

    \b
    rageval-spec status
    rageval-spec status rageval-demo
    rageval-spec status --format json
    """
    from rageval_spec.drawing.view import write_text

    found = look_at(folder)
    if form == "json":
        console.write(_dump(found))
        return PASSED
    advice = min(found.advice, key=lambda one: one.rank)  # of equal ones, that of the nearest spec
    console.write(write_text(_draw(found)))
    console.show(f"\nNext: {advice.why}\n  {advice.command}\n")
    return PASSED


def look_at(folder: Path) -> Status:
    """Everything of this program in a folder and the two levels below it; reads files, and changes none."""
    from rageval_spec.commands.init.folder_proposals import propose

    found = Status()
    files = _list_files(folder, found)
    specs = _open_specs(files, found)
    results = _open_results(files, specs, found)
    for place in dict.fromkeys((folder, *(path.parent for path, _ in specs))):
        _describe_history(place / _KEPT, found)
        _describe_store(place / _KEPT / "store", found)
    for path, spec in specs:
        if spec.history.use == "postgres":
            found.add("history", path, "its history is in PostgreSQL, which was not looked at")
        _compare_with_results(path, spec, [one for one in results if one.spec == path], found)
    _describe_forms(files, found)
    found.advise(11, "see what it does, in a folder of its own", "demo")
    for one in propose(folder)[:1]:
        found.advise(7 if not specs else 12, f"write a spec for {one.told}", "init", *one.arguments)
    return found


def _list_files(folder: Path, found: Status, depth: int = 0) -> list[Path]:
    """The files of a folder and those below it, without hidden folders; a link to a folder is not followed."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(islice(listed, _MOST_FILES + 1), key=lambda entry: entry.name)
    except OSError as error:
        found.add("specs", folder, f"cannot be read: {error.strerror or error}", is_wrong=True)
        return []
    files = [folder / entry.name for entry in entries if _is_file(entry)]
    for entry in entries:
        is_hidden = entry.name.startswith((".", "__")) or entry.name in ("node_modules", "venv", "site-packages")
        if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST and not is_hidden and len(files) <= _MOST_FILES:
            files += _list_files(folder / entry.name, found, depth + 1)
    found.is_partial |= len(files) > _MOST_FILES
    return files[:_MOST_FILES]


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link to something that this user may not see
        return False


def _open_specs(files: Sequence[Path], found: Status) -> list[tuple[Path, Spec]]:
    from rageval_spec.spec import load

    opened = []
    for path in files:
        content = _read(path) if path.suffix in (".yaml", ".yml") else b""
        if not all(re.search(part, content) for part in _PARTS_OF_SPECS):
            continue
        try:
            spec = load(path)
        except RagevalError as error:
            diagnostics = error.diagnostics if isinstance(error, SpecError) else ()
            faults = [one for one in diagnostics if one.severity == "error"]
            first = f"line {faults[0].position.line}: {faults[0].message}" if faults else str(error)
            more = f"; and {count_noun(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
            found.add("specs", path, f"{first}{more}", is_wrong=True)
            found.advise(0, f"repair {path}; this lists its faults", "validate", path)
            continue
        gates = count_noun(len(spec.gates), "gate")
        found.add("specs", path, f"{spec.name}: {gates}" if spec.datasets else f"{spec.name}: a monitor")
        opened.append((path, spec))
    return opened


def _read(path: Path, most: int = _MOST_BYTES) -> bytes:
    """The content of a file, at most so many bytes of it, or nothing if it is large or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(most) if path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return b""


def _open_results(files: Sequence[Path], specs: Sequence[tuple[Path, Spec]], found: Status) -> list[_Opened]:
    """The results folders, the newest first."""
    from rageval_spec.data.results import parse_results
    from rageval_spec.drawing.verdict import describe_verdict, share_failures

    opened = []
    for path in files:
        if path.name != "results.json":
            continue
        try:
            evaluation = parse_results(path.read_bytes(), str(path))
            time = path.stat().st_mtime
        except (RagevalError, OSError) as error:
            found.add("results", path.parent, str(error), is_wrong=True)
            continue
        opened.append(_Opened(path.parent, time, _find_spec(evaluation, path, specs), evaluation))
    newest = {one.spec or one.evaluation.name: one for one in sorted(opened, key=lambda one: one.time)}
    for one in opened:
        told = f"{one.evaluation.name}: {describe_verdict(one.evaluation)}"
        made = f"{datetime.fromtimestamp(one.time, UTC):%Y-%m-%d %H:%M} UTC"
        latest = newest[one.spec or one.evaluation.name]
        is_wrong = latest is one and one.evaluation.verdict in ("fail", "error")
        more = f", before {latest.folder}" if latest is not one else ""
        more = f": {share_failures(one.evaluation)[0]}" if is_wrong and one.evaluation.failures else more
        found.add("results", one.folder, f"{told}, {made}{more}", is_wrong=is_wrong)
    waiting = [path for path in files if path.match("record-*.pending.json")]
    if waiting:
        told = f"{count_noun(len(waiting), 'record')} could not be sent to the history yet"
        found.add("history", waiting[0].parent, told, is_wrong=True)
    return sorted(opened, key=lambda one: one.time, reverse=True)


def _find_spec(evaluation: Evaluation, path: Path, specs: Sequence[tuple[Path, Spec]]) -> Path | None:
    """The spec that results were made with, by its digest, else by its name; of several, the one nearest to them."""
    own = evaluation.provenance.spec_digest
    ranks = [(spec.digest == own, spec.name == evaluation.name, len(os.path.commonpath((one.parent, path))), one)
             for one, spec in specs]  # fmt: skip
    best = max(ranks, default=None)
    return best[-1] if best and any(best[:2]) else None


def _describe_history(kept: Path, found: Status) -> None:
    from rageval_spec.history.database import FILE, HistoryError, peek
    from rageval_spec.history.saved_evaluations import labels

    database, saved = kept / FILE.name, labels(kept / "history")
    try:
        count, newest, named = peek(database) if database.is_file() else (0, None, ())
    except HistoryError as error:
        found.add("history", database, str(error), is_wrong=True)
        if re.search("not a database|malformed", str(error)):  # not one that is locked or may not be read
            move = shlex.join(["mv", str(database), f"{database}.damaged"])
            found.advice.append(Advice(1, "move the damaged history away; the next run makes a new one", move))
        return
    known = sorted({*saved, *named})
    told = f"; labels {', '.join(known)}" if known else ""
    when = f", the newest {newest[:10]} {newest[11:16]} UTC" if newest else ""
    if count or known:
        found.add("history", database, f"{count_noun(count, 'record')}{when}{told}")


def _describe_store(store: Path, found: Status) -> None:
    size = 0
    for path in (Path(folder, name) for folder, _, names in os.walk(store) for name in names):
        with suppress(OSError):  # another process removed it
            size += path.lstat().st_size
    if size:
        found.add("store", store, format_size(size))


def _compare_with_results(path: Path, spec: Spec, results: Sequence[_Opened], found: Status) -> None:
    """Advise on a spec, by its newest results, and list its baselines that are missing or cannot be compared with."""
    if not spec.datasets:
        found.advise(6, f"judge production with {path}", "monitor", "run", path)
        return
    _describe_baselines(path, spec, results, found)
    if not results:
        found.advise(3, f"{path} has no results here yet", "run", path)
        return
    folder, *_, evaluation = results[0]
    if evaluation.provenance.spec_digest != spec.digest:
        found.advise(2, f"{path} is not the spec that {folder} was made with; evaluate it", "run", path)
    elif evaluation.verdict == "error":
        told = f"the evaluation in {folder} is incomplete; ask again for what failed"
        found.advise(1, told, "run", path, "--retry-failed")
    elif evaluation.verdict == "fail":
        failed = list_names([*dict.fromkeys(one.metric for one in evaluation.gates if one.counted == "fail")])
        found.advise(1, f"see the questions behind the failed gates: {failed}", "show", folder)
    elif not spec.gates:
        found.advise(9, f"{path} has no gates; see the questions with the lowest values", "show", folder)
    elif not any(gate.baseline for gate in spec.gates):
        found.advise(9, "keep these results as a baseline for gates", "run", path, "--save-as", "main")
    else:
        found.advise(10, "every gate passed; see the questions with the lowest values", "show", folder)


def _describe_baselines(path: Path, spec: Spec, results: Sequence[_Opened], found: Status) -> None:
    from rageval_spec.history.database import HistoryError, locate, peek
    from rageval_spec.history.saved_evaluations import FOLDER, holds_results, list_candidates

    place = locate(spec.history, spec.folder)
    named: Sequence[str] | None = ()
    with suppress(HistoryError):
        named = None if isinstance(place, str) else peek(place)[2] if place is not None and place.is_file() else ()
    for name in dict.fromkeys(gate.baseline for gate in spec.gates if gate.baseline not in (None, *spec.systems)):
        assert name is not None
        places = (*list_candidates(name, spec.folder / FOLDER), spec.folder / name)
        is_record = re.fullmatch(r"previous|(branch|commit):.*|[0-9a-f]{4,}", name)
        if named is not None and not is_record and name not in named and not any(map(holds_results, places)):
            found.add("baselines", name, f"{path} compares with it, but there is none", is_wrong=True)
            found.advise(1, f"the baseline {name} of {path} is missing; make it, without gates",
                         "run", path, "--set", "gates=[]", "--save-as", name)  # fmt: skip
        unlike = [one for result in results[:1] for one in result.evaluation.baselines if one.baseline == name]
        told = next((one.changes[0].told for one in unlike if not one.is_comparable and one.changes), None)
        if told is not None:
            found.add("baselines", name, f"{path} cannot be compared with it any more: {told}", is_wrong=True)
            found.advise(4, f"{name} is not comparable any more; replace it", "run", path, "--save-as", name)


def _describe_forms(files: Sequence[Path], found: Status) -> None:
    """The forms of `review select` in which answers have no label yet."""
    from rageval_spec.review.label_import import read_form

    for path in files:
        content = _read(path, _MOST_OF_HEADER) if path.suffix in (".csv", ".xlsx") else b""
        if not (content.startswith(b"PK") or re.search(rb"[,;\t]\"?row\b", content.partition(b"\n")[0])):
            continue
        try:
            entries = read_form(path).entries
        except RagevalError:  # a table of the user's own
            continue
        blank = sum(entry.value is None for entry in entries)
        told = f"{blank:,} of {count_noun(len(entries), 'label')} {agree(blank, 'is')} still missing"
        found.add("review", path, told)
        if blank:
            labels = path.with_name("labels.csv")
            found.advise(5, f"when {path} is filled in, take its labels over", "review", "import", path, "-o", labels)


def _draw(found: Status) -> Iterator[Block]:
    from rageval_spec.drawing.view import Heading, Items, Line, Span

    if not found.found:
        yield Line("There are no specs, results or records here.")
    for kind in KINDS:
        rows = [one for one in found.found if one.kind == kind]
        if rows:
            yield Heading(kind.capitalize(), 2)
            yield Items([(f"{'✗' if one.is_wrong else '•'} {one.path}", Span(one.told), "red" if one.is_wrong else "")
                         for one in rows])  # fmt: skip
    if found.is_partial:
        yield Line(Span(f"Only the first {_MOST_FILES:,} files were looked at.", "dim"))


def _dump(found: Status) -> str:
    advice = min(found.advice, key=lambda one: one.rank)
    return dump_visible(
        {
            "format_version": FORMAT_VERSION,
            "found": [one._asdict() for one in sorted(found.found, key=lambda one: KINDS.index(one.kind))],
            "is_partial": found.is_partial,
            "next": {"why": advice.why, "command": advice.command},
        }
    )
