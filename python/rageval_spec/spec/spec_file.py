"""A spec's file or text -> the frozen `Spec`, or a `SpecError` with all diagnostics."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.kernels.inputs import name_special
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.plugin import SpecOrigin
from rageval_spec.spec.blocks import gates as gate_blocks
from rageval_spec.spec.blocks.block_validation import CheckedSpec, check_tree, list_places
from rageval_spec.spec.blocks.error_explanation import describe
from rageval_spec.spec.blocks.former_keys import adopt_former_keys
from rageval_spec.spec.blocks.gates import GateNode, NamedMetric
from rageval_spec.spec.blocks.input_files import check_history, find_lacking_parts, find_missing, find_shared_files
from rageval_spec.spec.blocks.monitor import check_monitor
from rageval_spec.spec.blocks.question_weights import KEYS as DESIGN_KEYS
from rageval_spec.spec.blocks.question_weights import check_weight_keys, resolve_weight_keys
from rageval_spec.spec.blocks.references import add_defaults, check_references
from rageval_spec.spec.blocks.slices import check_slices
from rageval_spec.spec.blocks.spec_node import (
    INNER_SECTIONS,
    NAMED_SECTIONS,
    SEND,
    SINGLE_SECTIONS,
    VERSION,
    HistoryNode,
    Spec,
    SpecNode,
)
from rageval_spec.spec.overrides import ARGUMENT, OPTION, Overrides, add_axes, apply_axes, list_single_changes, override
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import Places, SourceText, cut
from rageval_spec.spec.text.variables import fill_in_variables, warn_of_credentials

if TYPE_CHECKING:
    from rageval_spec.data.bands import BandScale


STDIN = "-"
_MOST_BYTES = 4 * yaml_tree.MAX_CHARACTERS
_MOST_DIAGNOSTICS = 100
_NOT_IN_NAMES = compile_later(r'[\x00-\x1f/\\:*?"<>|$\x7f]+')
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AS_WRITTEN = ("ranking", "statistics", "diagnosis", "limits", "samples", "redact", "stopping", "resume", "monitor",
               "axes", "sweep", "repeat")  # fmt: skip
"""The keys that a spec has as its node has them."""


def load(
    path: Path | str,
    *,
    overrides: Overrides = (),
    option: str = OPTION,
    environment: Mapping[str, str] | None = None,
    check_files: bool = True,
) -> Spec:
    """Read a spec from a file.

    Args:
        path: the file; "-" is standard input, with paths relative to the current folder.
        overrides: `path=value` strings, as for `--set` on the command line, or a dict of paths and values.
        option: what diagnostics call these strings.
        environment: where `${VAR}` is looked up; by default the environment of the process.
        check_files: whether a missing file that the spec names is an error.

    Raises:
        SpecError: the spec is wrong; it holds all diagnostics, sorted by position.
    """
    name, text = read_text(path)
    folder = Path() if str(path) == STDIN else Path(path).parent
    return loads(
        text,
        path=name,
        folder=folder,
        overrides=overrides,
        option=option,
        environment=environment,
        check_files=check_files,
    )


def loads(
    text: str,
    *,
    path: str = "<text>",
    folder: Path = Path(),
    overrides: Overrides = (),
    option: str = OPTION,
    environment: Mapping[str, str] | None = None,
    check_files: bool = True,
    sweep: Sequence[str] = (),
    combination: Mapping[str, int] | None = None,
) -> Spec:
    """As `load`, from a text. `path` is the spec's name in messages; relative paths start at `folder`.

    `sweep` adds axes, `path=a,b`. `combination` has the place of the chosen value of each axis, by path; by default,
    the spec has the first values, and all are checked.
    """
    source = SourceText(path, text.removeprefix("\ufeff"))
    root, diagnostics = yaml_tree.read_yaml(source)
    if not isinstance(root, yaml_tree.YamlMapping):
        raise _spec_error([*diagnostics, *_explain_top(source, root, bool(diagnostics))])
    tree, faults = override(root, overrides, option)
    tree, wrong = add_axes(tree, sweep, overrides)
    diagnostics += [*faults, *wrong]
    again = partial(loads, text, path=path, folder=folder, overrides=overrides, option=option, environment=environment)
    for other in list_single_changes(tree) if combination is None else ():
        try:
            again(check_files=check_files, sweep=sweep, combination=other)
        except SpecError as error:
            diagnostics += error.diagnostics
    tree, wrong = apply_axes(tree, combination or {})
    return _load_tree(tree, [*diagnostics, *wrong], path, folder, environment, check_files)


def load_dict(
    content: Mapping[str, Any],
    *,
    path: str = "spec",
    folder: Path = Path(),
    overrides: Overrides = (),
    environment: Mapping[str, str] | None = None,
) -> Spec:
    """As `loads`, from a dict with the content that a YAML file would have. Diagnostics name key paths.

    `content` has dicts, lists, text, numbers, booleans and None; `path` is also the default name of the spec.
    """
    from rageval_spec.spec.overrides import read_value

    root, diagnostics = read_value(content, (), path)
    if not isinstance(root, yaml_tree.YamlMapping):
        message = f"a spec is a dict with the keys {', '.join(_required_keys())}; found {type(content).__name__}"
        raise _spec_error([root.place.diagnose(message, "wrong-type")])
    tree, faults = override(root, overrides, ARGUMENT)
    return _load_tree(tree, [*diagnostics, *faults], path, folder, environment, check_files=True)


def load_tree(tree: yaml_tree.YamlMapping, *, path: str, overrides: Overrides = ()) -> Spec:
    """As `loads`, from a tree whose places say where its values come from. Its variables are filled in, in place."""
    return _load_tree(*override(tree, overrides), path, Path(), None, check_files=True)


def _load_tree(
    tree: yaml_tree.YamlMapping,
    diagnostics: list[Diagnostic],
    path: str,
    folder: Path,
    environment: Mapping[str, str] | None,
    check_files: bool,
) -> Spec:
    former, faults = adopt_former_keys(tree)
    diagnostics += [*(key.warn() for key in former), *faults]
    filled = fill_in_variables(tree, os.environ if environment is None else environment)
    checked = check_tree(tree, filled.secrets, folder)
    places = list_places(tree, tree.place)
    diagnostics += [*filled.diagnostics, *checked.diagnostics, *add_defaults(checked, places, folder)]
    diagnostics += check_references(checked, tree, places)
    diagnostics += gate_blocks.name_metrics(checked)
    gates, dangling = gate_blocks.resolve_gates(checked, checked.gates, checked.partial_gates, places)
    bands, unbanded = _resolve_bands(checked, gates, places)
    diagnostics += [*dangling, *unbanded, *gate_blocks.check_percentages(checked, places)]
    has_all_slices = "slices" not in checked.incomplete
    diagnostics += check_slices(checked.slices, checked.gates, places, is_complete=has_all_slices)
    if checked.spec is not None:
        diagnostics += check_history(checked.spec.history, places, folder)
        by_index = dict(zip(checked.gates, gates, strict=True))
        diagnostics += gate_blocks.check_stopping(checked.spec.stopping, checked, by_index, places)
        if checked.spec.monitor is not None:
            diagnostics += check_monitor(checked.spec.monitor, checked, places)
            if "none" in (checked.spec.history, getattr(checked.spec.history, "use", None)):
                told = "a monitor keeps its ledger in the history"
                diagnostics.append(places.diagnose(("history",), told, "wrong-monitor", "remove 'history: none'"))
        datasets = checked.names.get("datasets") if "datasets" in tree.entries else None
        diagnostics += check_weight_keys(checked.spec, datasets, places, folder, check_files=check_files)
    if "monitor" not in tree.entries and checked.names.get("datasets") == [] and "datasets" not in checked.incomplete:
        diagnostics.append(_explain_no_datasets(tree))
    if check_files:
        diagnostics += find_missing(
            [*checked.blocks, *checked.partial_blocks], places, folder, checked.names.get("datasets", [])
        )
        diagnostics += find_lacking_parts(checked.blocks)
    diagnostics += find_shared_files(checked.blocks)
    diagnostics += warn_of_credentials(tree)
    diagnostics += _warn_of_dialects(tree, diagnostics)
    if checked.spec is None or any(diagnostic.severity == "error" for diagnostic in diagnostics):
        raise _spec_error(diagnostics)
    node, history = checked.spec, checked.spec.history
    named: dict[str, Any] = {
        section: MappingProxyType({block.name: block.node for block in checked.of(section)})
        for section in NAMED_SECTIONS
    }
    return Spec(
        name=node.name or _NOT_IN_NAMES.sub("-", Path(path).stem).strip(" .-")[:100] or "spec",
        path=path,
        folder=folder,
        **named,
        **{key: getattr(node, key) for key in _AS_WRITTEN},
        metrics=tuple(NamedMetric(name, metric.node) for name, metric in checked.metrics.items()),
        gates=gates,
        bands=MappingProxyType(bands),
        reports=tuple(block.node for block in checked.of("reports") if block.path[:2] != SEND),
        destinations=tuple(block.node for block in checked.of("reports") if block.path[:2] == SEND),
        notifiers=tuple(block.node for block in checked.of("notifiers")),
        digest=_digest(checked, node, gates),
        places=places,
        warnings=tuple(sorted(diagnostics, key=lambda warning: (warning.path, warning.position))),
        slices=tuple(checked.slices.values()),
        history=HistoryNode(use=history) if isinstance(history, str) else history,
        designs=resolve_weight_keys(node, list(named["datasets"])),
        engine=next((block.node for block in checked.of("engines")), None),
    )


def _explain_no_datasets(tree: yaml_tree.YamlMapping) -> Diagnostic:
    hint = "write what to evaluate on: datasets: {golden: {use: jsonl, path: golden.jsonl}}"
    if "datasets" not in tree.entries:
        hint += ", or what to watch: monitor: {every: 5m, alerts: [coverage]}"
        return tree.place.diagnose("the key 'datasets' is missing", "missing-key", hint)
    return tree.entries["datasets"].key_place.diagnose("'datasets' is empty", "empty-spec", hint)


def _resolve_bands(
    checked: CheckedSpec, gates: Sequence[GateNode], places: Places
) -> tuple[dict[str, BandScale], list[Diagnostic]]:
    """The scales of a spec that has bands, and diagnostics; few specs do, so the scales are imported here."""
    written = checked.spec.model_fields_set if checked.spec is not None else frozenset[str]()
    if not written & {"bands", "diagnosis"} and all(gate.at_least is None for gate in gates):
        return {}, []
    from rageval_spec.spec.blocks.band_scales import check_diagnosis, check_levels, resolve_bands

    bands, diagnostics = resolve_bands(checked, places)
    known = [(index, gate) for index, gate in zip(checked.gates, gates, strict=True) if gate.metric in checked.metrics]
    levels = [] if diagnostics or checked.spec is None else check_levels(known, bands, places)
    return bands, [*diagnostics, *levels, *check_diagnosis(checked, places)]


def read_text(path: Path | str) -> tuple[str, str]:
    """A spec's name in messages, and its text as it is; raises `SpecError` if it cannot be read."""
    name = "<stdin>" if str(path) == STDIN else str(path)
    return name, _decode(_read_bytes(path, name), name)


def _read_bytes(path: Path | str, name: str) -> bytes:
    try:
        if str(path) == STDIN:
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            if kind := name_special(path):
                raise ValueError(f"it is {kind}")
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _spec_error([_explain_unreadable(Path(path), name, error)]) from None
    if len(data) > _MOST_BYTES:
        message = f"the spec is larger than {_MOST_BYTES:,} bytes"
        raise _spec_error([SourceText(name, "").place(0).diagnose(message, "too-large", "is this a data file?")])
    return data


def _explain_unreadable(path: Path, name: str, error: OSError | ValueError) -> Diagnostic:
    place = SourceText(name, "").place(0)
    if isinstance(error, FileNotFoundError):
        siblings = sorted(file.name for file in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
        hint = suggest(path.name, siblings) or "to get a sample spec, run `rageval-spec init`"
        return place.diagnose("there is no such file", "missing-file", hint)
    if isinstance(error, IsADirectoryError):
        return place.diagnose("this is a folder", "missing-file", "name the spec's file")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return place.diagnose(f"the file cannot be read: {reason}", "missing-file")


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith(_UTF_16):
            place, message = SourceText(name, "").place(0), "the spec is UTF-16 text"
        else:
            source = SourceText(name, data.decode("utf-8", errors="replace"))
            place = source.place(len(data[: error.start].decode("utf-8")))
            message = f"the byte 0x{data[error.start]:02X} is not UTF-8"
        raise _spec_error([place.diagnose(message, "not-utf8", "save the file as UTF-8")]) from None


def _explain_top(source: SourceText, root: yaml_tree.YamlNode | None, explained: bool) -> Iterator[Diagnostic]:
    if root is None and explained:
        return
    if root is None or (isinstance(root, yaml_tree.YamlScalar) and root.value is None):
        first = "to get a sample spec, run `rageval-spec init`"
        yield source.place(0).diagnose("the spec is empty", "empty-spec", first)
        return
    hint = "put a space after the ':' of a key" if ":" in getattr(root, "text", "") else None
    message = f"a spec is a mapping with the keys {', '.join(_required_keys())}; found {describe(root)}"
    yield root.place.diagnose(message, "wrong-type", hint)


def _required_keys() -> Iterable[str]:
    """Those of a spec that evaluates; one that only watches production needs no datasets."""
    return (name for name, field in SpecNode.model_fields.items() if field.is_required() or name == "datasets")


def _warn_of_dialects(tree: yaml_tree.YamlMapping, diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Warn of values that YAML 1.1 and 1.2 read differently, although this reader's reading is valid here."""
    taken = {(diagnostic.path, diagnostic.position) for diagnostic in diagnostics}
    for scalar in yaml_tree.walk_scalars(tree):
        if not scalar.plain or scalar.faulty or (scalar.place.path, scalar.place.position) in taken:
            continue
        if isinstance(scalar.value, bool) and yaml_tree.is_word_for_boolean(scalar.text):
            hint = f"write {str(scalar.value).lower()}"
            message = f"YAML 1.2, which many editors use, reads {cut(scalar.text)} as text"
            yield scalar.place.diagnose(message, "ambiguous-value", hint, "warning")
        elif isinstance(scalar.value, str) and yaml_tree.is_number_elsewhere(scalar.text):
            hint = f'quote it: "{cut(scalar.text)}", or write {yaml_tree.spell_number(scalar.text)}'
            message = f"YAML 1.2, which many editors use, reads {cut(scalar.text)} as a number"
            yield scalar.place.diagnose(message, "ambiguous-value", hint, "warning")


def _digest(checked: CheckedSpec, node: SpecNode, gates: Sequence[GateNode]) -> str:
    """The sha256 of the spec's content with defaults filled in. The order of entries counts, as it does in tables.

    `limits`, `engine`, `resume`, `samples`, `redact`, `history` and `monitor` are left out: no number depends on them.
    """
    content = {
        "version": VERSION,
        "name": node.name,
        "blocks": [
            [*block.path, block.node.model_dump(mode="json", by_alias=True)]
            for block in checked.blocks
            if block.path[:2] not in INNER_SECTIONS and block.path[0] not in SINGLE_SECTIONS
        ],
        "gates": [gate.content() for gate in gates],
        **{key: getattr(node, key).model_dump(mode="json") for key in ("ranking", "statistics")},
    }
    if node.bands is not None:
        content["bands"] = node.bands
    if "diagnosis" in node.model_fields_set:
        content["diagnosis"] = node.diagnosis.model_dump(mode="json")
    if checked.slices:
        content["slices"] = [entry.model_dump(mode="json", by_alias=True) for entry in checked.slices.values()]
    content |= {key: getattr(node, key) for key in DESIGN_KEYS if getattr(node, key) is not None}
    content |= {"repeat": node.repeat} if node.repeat > 1 else {}
    if node.stopping is not None:
        content["stopping"] = node.stopping.model_dump(mode="json")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _spec_error(diagnostics: Iterable[Diagnostic]) -> SpecError:
    """An error with all diagnostics; if there are too many, with the first hundred and a count of the rest."""
    found = sorted(set(diagnostics), key=lambda d: (d.path, d.position, d.message))
    if len(found) > _MOST_DIAGNOSTICS:
        rest = len(found) - _MOST_DIAGNOSTICS
        last = found[_MOST_DIAGNOSTICS]
        found = found[:_MOST_DIAGNOSTICS]
        found.append(Diagnostic(last.path, last.position, f"{rest} more errors follow", "more-errors"))
    return SpecError(found)


def find_spec_origin(spec: Spec) -> SpecOrigin | None:
    """The spec's path and the line of each gate; None for a spec that was not read from a file.

    The path starts at the top of the Git repository that holds the spec. Outside a repository, it is the path that the
    user gave.
    """
    path = Path(spec.path)
    if not path.is_file() or not spec.places:  # another process has no places, and writes no reports
        return None
    places = [spec.places.nearest(("gates", index)) for index in range(len(spec.gates))]
    lines = (place.position.line if place.path == spec.path else 1 for place in places)  # `--set` may have added it
    return SpecOrigin(name_in_repository(path), tuple(max(1, line) for line in lines))


def name_in_repository(path: Path) -> str:
    """The path from the top of the Git repository that holds a file; outside a repository, the path as it is."""
    whole = path.resolve()
    top = next((folder for folder in whole.parents if (folder / ".git").exists()), None)
    return (path if top is None else whole.relative_to(top)).as_posix()
