"""The memory and disk that an evaluation needs, and what there is: estimated before anything starts.

Each amount has two ends: what it takes at least, and what it is likely to take. Only the lower end refuses anything, so
that nothing is refused that fits.

What is likely was set by `benches/planned_needs.py`, which runs evaluations of two sizes of each kind from a small
process and compares the estimate with the most resident memory that `resource.getrusage` tells, and with the files that
they leave: rows of about 1 kB, with three metrics, with judges, with a page, and `dense` with minilm. It should be 1 to
1.5 times what was measured. Much shorter rows, other words and longer documents are further off.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.planning.plan import EvaluationPlan, PlanStep, state_of
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.plugin.block_names import names_in
from rageval_spec.plugin.report import Report
from rageval_spec.plugin.system import Amount
from rageval_spec.store.disk import INDEXES_FOLDER
from rageval_spec.store.vectors import VECTORS_FOLDER
from rageval_spec.wording import format_size

PROCESS = Amount(0, 140 * 10**6)
"""What Python, polars and numpy take in memory before any data. It is loaded by then, so it refuses nothing."""
_MODEL = 0.3, 2.0
"""A loaded model takes so many times its files, with the buffers of a batch."""
_TABLES = 0.2, 0.9
"""The tables of questions, answers and judgements take so many times their files, while they are read and judged."""
_MEASURED, _JUDGED, _SHOWN = 0.15, 2.2, 1.0
"""What each metric adds to that, what judges add, and what a report of all rows adds, such as `html`."""
_BUFFERS, _MOST_BUFFERED = 6, 90 * 10**6
"""What reading and measuring in blocks holds besides: so many times the files, up to so many bytes."""
_RESULTS = 0.02, 0.5
"""The results folder takes so many times these files: its texts are compressed, and each is there once."""
_FOUND, _WRITTEN = 0.25, 0.5
"""What the findings of judges add to that, and a report of all rows."""
_UNLIKELY = 50
"""If all files together are smaller than this part of the memory and the disk, nothing is measured before a run."""


class StepNeeds(NamedTuple):
    """What a step needs beside the process; `advice` says what in the spec makes it less."""

    title: str
    memory: Amount
    disk: Amount
    advice: str
    dataset: str | None = None


@dataclass(frozen=True)
class ResourceNeeds:
    """The needs of an evaluation. `memory` and `free` are what there is; None if that is not known.

    Without a `store`, what it would keep is in temporary files while the evaluation runs, and `free` is of their disk.
    """

    steps: tuple[StepNeeds, ...]
    tables: Amount
    results: Amount
    memory: int | None
    store: Path | None
    free: int | None
    output: Path | None
    output_free: int | None

    @property
    def peak(self) -> Amount:
        """The memory of the whole evaluation: steps come one after another."""
        return Amount(
            PROCESS.least + self.tables.least + max((step.memory.least for step in self.steps), default=0),
            PROCESS.likely + self.tables.likely + max((step.memory.likely for step in self.steps), default=0),
        )

    @property
    def kept(self) -> Amount:
        """What all steps write to the store. Steps on the same corpus that write as much share it.

        What the store has of a corpus already is not known before the corpus is read, so the lower end is then 0.
        """
        shared = {(step.dataset, step.disk): step.disk for step in self.steps}.values()
        kept = () if self.store is None else (self.store / INDEXES_FOLDER, self.store / VECTORS_FOLDER)
        least = 0 if any(folder.is_dir() for folder in kept) else max((one.least for one in shared), default=0)
        return Amount(least, sum(one.likely for one in shared))

    def render(self) -> str:
        """The estimate as lines of text."""
        lines = [f"memory: about {format_size(self.peak.likely)}, {_tell(self.memory, 'available')}"]
        lines += [
            f"  {step.title}  about {format_size(step.memory.likely)} of memory, {format_size(step.disk.likely)} stored"
            for step in self.steps
        ]
        where = f"of temporary files in {tempfile.gettempdir()}" if self.store is None else "in the store"
        if self.store is not None or self.steps:
            lines.append(f"disk: about {format_size(self.kept.likely)} {where}, {_tell(self.free, 'free')}")
        if self.output is not None:
            told = _tell(self.output_free, "free")
            lines.append(f"disk: about {format_size(self.results.likely)} of results, {told}")
        return "".join(f"{line}\n" for line in lines)

    def to_json(self) -> dict[str, Any]:
        """The estimate in JSON types, in bytes."""
        return {
            "memory": {**self.peak._asdict(), "available": self.memory},
            "store": {**self.kept._asdict(), "free": self.free},
            "results": {**self.results._asdict(), "free": self.output_free},
            "steps": [
                {"title": step.title, "memory": step.memory._asdict(), "disk": step.disk._asdict()}
                for step in self.steps
            ],
        }

    def refuse(self) -> None:
        """Raise UsageError if the lower end of an estimate is more than there is."""
        largest = max(self.steps, key=lambda step: step.memory.least, default=None)
        if self.memory is not None and self.peak.least > self.memory:
            raise UsageError(_complain(largest, self.peak.least, "memory", self.memory, "available", "less memory"))
        largest = max(self.steps, key=lambda step: step.disk.least, default=None)
        if self.free is not None and self.kept.least > self.free:
            what = "temporary disk" if self.store is None else "disk in the store"
            where = f"free in {tempfile.gettempdir() if self.store is None else self.store}"
            other = "TMPDIR" if self.store is None else "--store"
            other = f"name a folder on another disk with {other}"
            raise UsageError(_complain(largest, self.kept.least, what, self.free, where, other))
        if self.output_free is not None and self.results.least > self.output_free:
            where = f"free in {self.output}"
            other = "name a folder on another disk with -o"
            raise UsageError(_complain(None, self.results.least, "disk for results", self.output_free, where, other))


def _complain(step: StepNeeds | None, least: int, what: str, found: int, where: str, other: str) -> str:
    named = "the evaluation" if step is None else step.title
    advice = other if what != "memory" else "use a machine with more memory"
    more = f"{step.advice}, or " if step is not None and step.advice else ""
    return (
        f"{named} needs at least {format_size(least)} of {what}, and {format_size(found)} are {where}; {more}{advice}"
    )


def _tell(found: int | None, word: str) -> str:
    return f"not known how much is {word}" if found is None else f"{format_size(found)} {word}"


def estimate_needs(
    plan: EvaluationPlan, parts: SpecPlugins, has: Callable[[str], bool], store: Path | None, output: Path | None
) -> ResourceNeeds:
    """What the steps that are not in the store need. Reads the beginnings of corpora."""
    steps = [_measure(step, parts) for step in plan.of("retrieve") if state_of(step, has) == "to compute"]
    texts = sum(map(_size_of, _list_tables(plan)))
    models = sum(_size_of(file.path) for step in plan.of("model") for file in step.inputs)
    is_judged = any(names_in(one.node, "judges") for one in parts.metrics.values())
    is_shown = any(type(one).render_files is not Report.render_files for one in parts.reports)
    rate = _TABLES[1] + _MEASURED * len(parts.metrics) + _JUDGED * is_judged + _SHOWN * is_shown
    likely = rate * texts + min(_BUFFERS * texts, _MOST_BUFFERED) + _MODEL[1] * models
    tables = Amount(int(_TABLES[0] * texts + _MODEL[0] * models), int(likely))
    written = _RESULTS[1] + _FOUND * is_judged + _WRITTEN * is_shown
    results = Amount(int(_RESULTS[0] * texts), int(written * texts) + 20_000)
    return ResourceNeeds(
        tuple(step for step in steps if step is not None), tables, results, find_available_memory(),
        store, find_free_disk(_locate(store)),
        output, None if output is None else find_free_disk(output),
    )  # fmt: skip


def may_be_tight(plan: EvaluationPlan, store: Path | None, output: Path | None) -> bool:
    """Whether the files are large enough for this machine that needs must be estimated before a run."""
    folders = [_locate(store), *([] if output is None else [output])]
    room = [find_available_memory(), *map(find_free_disk, folders)]
    files = {file.path for step in plan.steps for file in step.inputs}
    least = min((one for one in room if one is not None), default=0)
    return PROCESS.likely + _UNLIKELY * sum(map(_size_of, files)) > least


def _locate(store: Path | None) -> Path:
    """The folder for indexes and vectors: that of temporary files if there is no store."""
    return Path(tempfile.gettempdir()) if store is None else store


def _measure(step: PlanStep, parts: SpecPlugins) -> StepNeeds | None:
    system = parts.system(str(step.system))
    if "corpus" not in system.needs:
        return None
    size = parts.datasets[str(step.dataset)].foresee().corpus_size
    if size is None:
        return None
    memory, disk, advice = system.estimate_needs(size)
    return StepNeeds(step.title, memory, disk, advice, step.dataset)


def _list_tables(plan: EvaluationPlan) -> set[Path]:
    """The files of questions, judgements and answers; not those of documents, nor runs, which kernels read in parts."""
    opened = {file.path for step in plan.of("open") for file in step.inputs if _reads_whole(file.key, file.path)}
    return opened | {file.path for step in plan.of("answer") for file in step.inputs}


def _reads_whole(key: tuple[Any, ...], path: Path) -> bool:
    return "corpus" not in (*key, path.name.split(".")[0])


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def find_free_disk(folder: Path) -> int | None:
    """The free bytes of the disk that a folder is, or will be, on; None if not known."""
    there = next((one for one in (folder.absolute(), *folder.absolute().parents) if one.exists()), None)
    try:
        return None if there is None else shutil.disk_usage(there).free
    except OSError:
        return None


def find_available_memory(root: Path = Path("/")) -> int | None:
    """The memory that this process can still get: of the machine, with swap, and of its cgroups; None if not known.

    Where there is no /proc, it is all memory of the machine, which is never less than what is free.
    """
    limits = [*_read_machine(root), *_read_cgroups(root)]
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names and root == Path("/"):
        limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return min(limits, default=None)


def _read_machine(root: Path) -> Iterator[int]:
    words = [line.split() for line in _read(root / "proc/meminfo").splitlines()]
    known = {one[0].rstrip(":"): int(one[1]) << 10 for one in words if len(one) > 1 and one[1].isdigit()}
    if "MemAvailable" in known:
        yield known["MemAvailable"] + known.get("SwapFree", 0)


def _read_cgroups(root: Path) -> Iterator[int]:
    """What each cgroup of this process and those above it still allow, by versions 2 and 1."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        most, used = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        )
        for folder in (top / name.strip("/"), *(top / name.strip("/")).parents):
            if not folder.is_relative_to(top):
                break
            limit, current = _read(folder / most).strip(), _read(folder / used).strip()
            if limit.isdigit() and current.isdigit():
                cached = dict(
                    line.split(maxsplit=1) for line in _read(folder / "memory.stat").splitlines() if " " in line
                )
                name_of_cache = "total_inactive_file" if controllers else "inactive_file"
                yield max(0, int(limit) - int(current) + int(cached.get(name_of_cache, 0)))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
