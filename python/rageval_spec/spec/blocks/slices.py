"""The entries of `slices:`, which say which queries of a dataset belong together, and their checks.

Slices that gates name are checked too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

from pydantic import Field

from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.spec.blocks.gates import GateNode, SliceName
from rageval_spec.spec.blocks.plugin_blocks import SpecBlock
from rageval_spec.spec.text.places import KeyPath, Places, list_hint, quote

BUILT_IN_COLUMNS = ("question", "reference", "answerable", "group", "condition")
"""What every dataset can have, whatever its file calls it. Other names are those of the file's other columns."""
MOST_SLICES = 50
"""The default of `max_slices`."""

Scalar: TypeAlias = bool | int | float | str
ColumnName: TypeAlias = Annotated[str, Field(min_length=1)]


class WordsNode(SpecBlock):
    """Bounds on a number of words, which are what white space separates."""

    min: int | None = Field(default=None, ge=0, description="At least this many words.")
    max: int | None = Field(default=None, ge=0, description="At most this many words.")


class ConditionNode(SpecBlock):
    """A condition on one column of a query. All tests that it names must hold, for one value if there is a list."""

    column: ColumnName = Field(
        description="`question`, `reference` (the first), `answerable`, `group`, `condition`, or another column of the "
        "questions' file."
    )
    equal: Scalar | None = Field(default=None, description="The value is this text, number or boolean.")
    among: tuple[Scalar, ...] | None = Field(
        default=None, alias="in", min_length=1, description="The value is one of these."
    )
    min: float | None = Field(default=None, description="The value is a number and at least this.")
    max: float | None = Field(default=None, description="The value is a number and at most this.")
    contains: str | None = Field(
        default=None, min_length=1, description="The text contains this, in upper or lower case."
    )
    words: WordsNode | None = Field(default=None, description="The text has this many words: `{min: 12}`.")


class SliceNode(SpecBlock):
    """An entry of `slices:` one slice for each value of a column, or one slice with conditions."""

    by: ColumnName | None = Field(
        default=None,
        description="One slice for each value of this column, named `difficulty=hard`. A query with a list of values "
        "is in the slice of each. The columns are those that conditions can name.",
    )
    name: SliceName | None = Field(default=None, min_length=1, description="With `where`: the slice's name.")
    where: ConditionNode | tuple[ConditionNode, ...] | None = Field(
        default=None, description="The queries of the slice: a condition, or several that must all hold."
    )
    min_queries: int = Field(default=1, ge=1, description="Make no slice of fewer queries than this.")
    max_slices: int = Field(
        default=MOST_SLICES,
        ge=1,
        le=1000,
        description="With `by`: make slices only of this many values, those with the most queries.",
    )

    @property
    def conditions(self) -> tuple[ConditionNode, ...]:
        """The conditions, all of which must hold; () for a slice `by` a column."""
        if self.where is None:
            return ()
        return self.where if isinstance(self.where, tuple) else (self.where,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that decide which queries belong to it."""
        named = [] if self.by is None else [self.by]
        return tuple(dict.fromkeys((*named, *(condition.column for condition in self.conditions))))


_Fault: TypeAlias = tuple[KeyPath, str, str | None]
"""A key path, what is wrong there, and what to write instead."""
_TESTS = ("equal", "among", "min", "max", "contains", "words")
_EXAMPLES = "write {by: difficulty}, or {name: long, where: {column: question, words: {min: 12}}}"


def check_slices(
    slices: Mapping[int, SliceNode], gates: Mapping[int, GateNode], places: Places, *, is_complete: bool
) -> list[Diagnostic]:
    """Diagnostics of slices that contradict themselves or one another, and of gates on slices that cannot exist.

    Slices and gates are by index. `is_complete`: no entry of `slices:` is wrong, so that every slice is known.
    """
    found = [
        (("slices", index, *key), message, hint)
        for index, node in slices.items()
        for key, message, hint in _find_contradictions(node)
    ]
    found += _find_repeated(slices)
    if is_complete:
        found += _find_unknown(gates, [*slices.values()])
    return [places.diagnose(path, message, "wrong-slice", hint) for path, message, hint in found]


def _find_contradictions(node: SliceNode) -> Iterator[_Fault]:
    """Contradictions within one slice, each with a path inside it."""
    if node.by is None and node.where is None:
        yield (), "the slice has neither 'by' nor 'where'", _EXAMPLES
    elif node.by is not None and node.where is not None:
        yield ("where",), "a slice has 'by' or 'where', not both", "make them two entries of 'slices:'"
    elif node.by is not None and node.name is not None:
        yield ("name",), "'name' belongs to 'where': slices 'by' a column are named after its values", "remove it"
    elif node.where is not None and node.name is None:
        yield (), "a slice with 'where' needs a name", "add 'name:'"
    for place, condition in enumerate(node.conditions):
        key: KeyPath = ("where", place) if isinstance(node.where, tuple) else ("where",)
        yield from (((*key, *inner), message, hint) for inner, message, hint in _find_impossible(condition))


def _find_impossible(condition: ConditionNode) -> Iterator[_Fault]:
    if all(getattr(condition, test) is None for test in _TESTS):
        message = f"the condition on {quote(condition.column)} tests nothing"
        yield ("column",), message, "add 'equal', 'in', 'min', 'max', 'contains' or 'words'"
    if condition.min is not None and condition.max is not None and condition.min > condition.max:
        yield ("min",), f"no value is at least {condition.min:g} and at most {condition.max:g}", "swap 'min' and 'max'"
    words = condition.words
    if words is not None and words.min is None and words.max is None:
        yield ("words",), "'words' has no bound", "write {min: 12}, {max: 5} or both"
    if words is not None and words.min is not None and words.max is not None and words.min > words.max:
        message = f"no text has at least {words.min} and at most {words.max} words"
        yield ("words", "min"), message, "swap 'min' and 'max'"


def _find_repeated(slices: Mapping[int, SliceNode]) -> Iterator[_Fault]:
    """Slices whose names are taken, by another slice or by those of a column's values."""
    columns = {node.by: index for index, node in reversed([*slices.items()]) if node.by is not None}
    names = {node.name: index for index, node in reversed([*slices.items()]) if node.name is not None}
    for index, node in slices.items():
        if node.by is not None and columns[node.by] != index:
            yield ("slices", index, "by"), f"the column {quote(node.by)} is listed twice", "remove one"
        elif node.name is not None and names[node.name] != index:
            yield ("slices", index, "name"), f"the slice {quote(node.name)} is listed twice", "give it another name"
        elif node.name is not None and _is_of_column(node.name, [*columns]):
            message = f"{quote(node.name)} is also a name for slices by a column"
            yield ("slices", index, "name"), message, "give it another name"


def _is_of_column(name: str, columns: Sequence[str]) -> bool:
    """Whether a name means slices by a column: `difficulty` all of them, `difficulty=hard` one."""
    return any(name == column or name.startswith(f"{column}=") for column in columns)


def _find_unknown(gates: Mapping[int, GateNode], slices: Sequence[SliceNode]) -> Iterator[_Fault]:
    """Gates on slices that no entry of `slices:` makes. Which values a column has is known only with the data."""
    columns = [node.by for node in slices if node.by is not None]
    names = [node.name for node in slices if node.name is not None]
    for index, gate in gates.items():
        if gate.slice is None or gate.slice in names or _is_of_column(gate.slice, columns):
            continue
        column, equals, value = gate.slice.partition("=")
        near = suggest(column, columns)
        if near is not None and equals:
            near = near.replace("'?", f"={value}'?")
        hint = suggest(gate.slice, names) or near or list_hint([*names, *(f"{by}=..." for by in columns)])
        yield (
            ("gates", index, "slice"),
            f"the spec has no slice {quote(gate.slice)}",
            hint or f"add 'slices: [{column}]'",
        )
