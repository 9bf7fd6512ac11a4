"""Rewrites the former keys in the text of a spec: only they change; comments, quotes, order and line ends stay.

The keys are those that reading the spec warns of (`former_keys.py`), at the places of these warnings. Each change is
checked by reading the new text: it must mean what the old one meant. What does not is left for people to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff
from functools import reduce
from pathlib import Path
from stat import S_IWUSR
from typing import Any

import yaml

from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import UsageError
from rageval_spec.spec.blocks.former_keys import FormerKey, adopt_former_keys
from rageval_spec.spec.spec_file import STDIN, read_text
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import YamlMapping, read_yaml, to_data
from rageval_spec.store.disk import write_or_explain

_BOM = "\ufeff"


@dataclass(frozen=True)
class Upgrade:
    """What there is to rename in a spec.

    Attributes:
        before, after: the text, and the text with the keys of today.
        renamed: the keys that `after` has under their names of today.
        by_hand: those that would change the meaning, such as a second `columns:` in one block.
    """

    path: Path
    before: str
    after: str
    renamed: tuple[FormerKey, ...]
    by_hand: tuple[FormerKey, ...]

    @property
    def diff(self) -> list[str]:
        """The lines that differ, as `diff -u` shows them; none if nothing does."""
        before, after, name = self.before.splitlines(), self.after.splitlines(), str(self.path)
        return list(unified_diff(before, after, name, name, n=1, lineterm=""))


def find_upgrade(path: Path) -> Upgrade:
    """What is to be renamed in a file; writes nothing.

    Raises:
        SpecError: the file cannot be read, or is no YAML, or has a key under both of its names.
    """
    if str(path) == STDIN:
        raise UsageError("what is rewritten is a file; name the spec's file in place of -")
    name, before = read_text(path)
    data, former = _read(name, before)
    after = before
    renamed: list[FormerKey] = []
    by_hand: list[FormerKey] = []
    for key in sorted(former, key=lambda key: key.place.position, reverse=True):
        changed = _rename(after, key)
        if changed is not None and _means(name, changed, data, len(former) - len(renamed) - 1):
            after = changed
            renamed.append(key)
        else:
            by_hand.append(key)
    return Upgrade(path, before, after, tuple(reversed(renamed)), tuple(reversed(by_hand)))


def write_upgrade(upgrade: Upgrade) -> None:
    """Write the new text in place of the old one, completely or not at all. Links are followed, permissions stay."""
    target = upgrade.path.resolve()
    mode = target.stat().st_mode
    if not mode & S_IWUSR:
        raise UsageError(f"{upgrade.path}: is read-only, and was not changed; make it writable and try again")
    write_or_explain(target, upgrade.after.encode(), f"{upgrade.path}: could not be written")
    target.chmod(mode)


def _read(name: str, text: str) -> tuple[Any, list[FormerKey]]:
    """What a text means with the keys of today, and its former keys."""
    root, diagnostics = read_yaml(SourceText(name, text.removeprefix(_BOM)))
    if not isinstance(root, YamlMapping):
        place = SourceText(name, text).place(0)
        raise SpecError(diagnostics or [place.diagnose("a spec is a mapping of keys", "wrong-type")])
    former, errors = adopt_former_keys(root)
    if diagnostics or errors:
        raise SpecError([*diagnostics, *errors])
    return to_data(root), former


def _means(name: str, text: str, data: Any, left: int) -> bool:
    """Whether a text means `data`, and has so many former keys left."""
    try:
        found, former = _read(name, text)
    except SpecError:
        return False
    return found == data and len(former) == left


def _rename(text: str, key: FormerKey) -> str | None:
    """The text with one key under its name of today; None if its value is written in a way that is not rewritten."""
    line, column, _ = key.place.position
    starts = [len(_BOM) * text.startswith(_BOM), *(end.end() for end in re.finditer(r"\r\n|\r|\n", text))]
    start = starts[line - 1] + column - 1
    pairs = _walk(yaml.compose(text, yaml.SafeLoader))
    block, node, value = next(found for found in pairs if found[1].start_mark.index == start)
    end, first, *inner = node.end_mark.index, *key.keys
    if present := next((other for name, other in block.value if name.value == first), None):
        return _merge(text, start, value, present, inner)
    rest: str | None = text[end:]
    for name in inner:
        rest = _wrap(text, end, value, name)
    mark = text[start] if text[start] in "'\"" else ""
    return None if rest is None else f"{text[:start]}{mark}{first}{mark}{rest}"


def _merge(text: str, start: int, value: yaml.Node, present: yaml.Node, names: list[str]) -> str | None:
    """The text with the `{...}` of a key moved into that of the key of today; None if one is written another way."""
    first, end, at = value.start_mark.index, value.end_mark.index, present.start_mark.index + 1
    if not getattr(value, "flow_style", False) or not getattr(present, "flow_style", False) or first < start:
        return None
    content = reduce(lambda inner, name: f"{{{name}: {inner}}}", names, text[first:end])
    moved = content[1:-1] + ", " * bool(present.value)
    before, after = text[:start], text[end:at] + moved + text[at:]
    if at < start:
        before, after = text[:at] + moved + text[at:start], text[end:]
    if after.lstrip().startswith(","):
        return before + after.lstrip()[1:].lstrip()
    return before.rstrip().removesuffix("," * after.lstrip().startswith("}")) + after


def _walk(top: yaml.Node | None) -> Iterator[tuple[yaml.MappingNode, yaml.Node, yaml.Node]]:
    """All keys with their blocks and their values; a block that aliases share is visited once."""
    seen: set[int] = set()
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from ((node, *pair) for pair in node.value)
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _wrap(text: str, after: int, value: yaml.Node, name: str) -> str | None:
    """The text from the end of a key on, with its value under the further key `name`."""
    start, end = value.start_mark.index, value.end_mark.index
    if start < after:  # an alias, whose content stands elsewhere
        return None
    if not isinstance(value, yaml.MappingNode) or value.flow_style:
        return f"{text[after:start]}{{{name}: {text[start:end]}}}{text[end:]}"
    first = text.rfind("\n", 0, start) + 1
    if first <= after:  # an anchor in the line of the key
        return None
    last: yaml.Node = value
    while isinstance(last, yaml.CollectionNode) and not last.flow_style:  # whose own mark is after later comments
        last = last.value[-1][1] if isinstance(last, yaml.MappingNode) else last.value[-1]
    end = first + len(text[first : last.end_mark.index].rstrip())
    ending = "\r\n" if text[first - 2 : first] == "\r\n" else "\n"
    body = re.sub(r"(?m)^(?=[^\r\n])", "  ", text[first:end])
    return f"{text[after:first]}{text[first:start]}{name}:{ending}{body}{text[end:]}"
