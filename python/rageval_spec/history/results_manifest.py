"""Evidence of what a run wrote: `manifest.json` with the digest of every file, and a statement about it to be signed.

`statement.json` is an in-toto Statement v1 with the predicate `test-result`: its subjects are the files of the
manifest and the manifest itself, its tests are the gates. Whoever wants a signature signs it with a tool of their own,
such as `cosign attest-blob --statement`. Neither file has a time or a path, so equal results give equal bytes.

Sources: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and
https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rageval_spec.data.json_documents import FORMAT_VERSION, dump_document, parse_document
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError
from rageval_spec.plugin.report import MANIFEST, STATEMENT
from rageval_spec.store.disk import digest_file, write_or_explain
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_RESULTS = {"pass": "PASSED", "warn": "WARNED"}


@dataclass(frozen=True)
class ListedFile:
    """A file as the manifest has it: its size in bytes, and the sha256 of its content."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The files that a run wrote to its results folder, by their paths in it, with `/` on every system."""

    format_version: int
    files: dict[str, ListedFile]


def write_manifest(folder: Path, files: Iterable[Path], evaluation: Evaluation) -> None:
    """Write the manifest of `files`, and the statement about them; files outside of the folder are left out.

    Raises:
        RagevalError: a file cannot be read or written.
    """
    relative = {path.relative_to(folder) for path in files if path.is_relative_to(folder)}
    inside = sorted(path.as_posix() for path in relative if ".." not in path.parts)
    listed = {name: ListedFile((folder / name).stat().st_size, digest_file(folder / name)) for name in inside}
    manifest = Manifest(FORMAT_VERSION, listed)
    content = dump_document({"format_version": FORMAT_VERSION, "files": {k: vars(v) for k, v in listed.items()}})
    statement = dump_document(make_statement(manifest, hashlib.sha256(content).hexdigest(), evaluation))
    for name, made in ((MANIFEST, content), (STATEMENT, statement)):
        write_or_explain(folder / name, made, f"{folder / name}: could not be written")


def make_statement(manifest: Manifest, digest: str, evaluation: Evaluation) -> dict[str, Any]:
    """The in-toto statement about an evaluation; `digest` is the sha256 of the manifest's file."""
    digests = {MANIFEST: digest} | {name: file.sha256 for name, file in manifest.files.items()}
    made_with = {f"version of {name}": version for name, version in evaluation.provenance.versions.items()}
    tests: dict[str, list[str]] = {"pass": [], "warn": [], "fail": []}
    for gate in evaluation.gates:
        place = ", ".join(part for part in (gate.dataset, gate.system, gate.slice) if part)
        tests[gate.counted].append(f"{gate.metric} {gate.bound}" + f" ({place})" * bool(place))
    inputs = (
        {"name": f"{dataset}: {part}", "digest": {"sha256": one}}
        for dataset, parts in evaluation.provenance.digests.items()
        for part, one in parts.items()
    )
    spec = {"name": evaluation.name, "digest": {"sha256": evaluation.provenance.spec_digest}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": one}} for name, one in sorted(digests.items())],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": _RESULTS.get(evaluation.verdict, "FAILED"),
            "configuration": [spec | {"annotations": {"outcome": evaluation.verdict, **made_with}}, *inputs],
            "passedTests": tests["pass"],
            "warnedTests": tests["warn"],
            "failedTests": [*tests["fail"], *evaluation.failures],
        },
    }


def check_manifest(folder: Path) -> tuple[int, list[str]]:
    """Compare a results folder with its manifest, and the statement about it with both.

    Returns:
        How many files the manifest has, and what the folder has besides, which another run or a person put there.

    Raises:
        DataError: there is no manifest, or it is damaged, or files are missing or changed; the message names each.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{folder} has no {MANIFEST}: no run ended there; evaluate again with `-o {folder}`")
    manifest = parse_document(Manifest, path.read_bytes(), str(path), "a manifest of rageval-spec", "run again")
    if not manifest.files:
        raise DataError(f"{path} is not a manifest of rageval-spec: it names no files; run again")
    if faults := [*_find_faults(folder, manifest)]:
        told = "".join(f"\n  {make_visible(fault)}" for fault in faults)
        raise DataError(f"{folder} is not as {MANIFEST} has it: {count_noun(len(faults), 'fault')}{told}")
    known = {*manifest.files, MANIFEST, STATEMENT}
    found = (one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())
    return len(manifest.files), sorted({*found} - known)


def _find_faults(folder: Path, manifest: Manifest) -> Iterator[str]:
    for name, file in manifest.files.items():
        path, place = folder / name, PurePosixPath(name)
        if ".." in place.parts or not path.is_relative_to(folder):
            yield f"{name}: is outside of the folder"
        elif any((folder / part).is_symlink() for part in (place, *place.parents[:-1])):
            yield f"{name}: is a link, or in a folder that is one; a run writes none"
        elif not path.is_file():
            yield f"{name}: is missing"
        elif (size := path.stat().st_size) != file.bytes:
            yield f"{name}: has {size:,} bytes, and had {file.bytes:,}"
        elif (found := digest_file(path)) != file.sha256:
            yield f"{name}: has the sha256 {found[:12]}…, and had {file.sha256[:12]}…"
    yield from (f"{one}: is a link; a run writes none" for one in (MANIFEST, STATEMENT) if (folder / one).is_symlink())
    listed = {MANIFEST: digest_file(folder / MANIFEST)} | {name: file.sha256 for name, file in manifest.files.items()}
    try:
        statement = json.loads((folder / STATEMENT).read_bytes())
        stated = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        yield f"{STATEMENT}: is missing" if isinstance(error, OSError) else f"{STATEMENT}: is no statement about files"
        return
    for name in sorted({*listed, *stated}, key=str):
        if listed.get(name) != stated.get(name):
            yield f"{STATEMENT}: has another sha256 of {name} than {MANIFEST}, or only one of them names it"
