"""The entries of `slices:`: which queries of a dataset belong together."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from rageval_spec.spec.blocks import Block

BUILT_IN_COLUMNS = ("question", "reference", "answerable", "group", "condition")
"""What every dataset can have, whatever its file calls it. Other names are those of the file's other columns."""
MOST_SLICES = 50
"""The default of `max_slices`."""

Scalar: TypeAlias = bool | int | float | str
ColumnName: TypeAlias = Annotated[str, Field(min_length=1)]


class WordsNode(Block):
    """Bounds on a number of words, which are what white space separates."""

    min: int | None = Field(default=None, ge=0, description="At least this many words.")
    max: int | None = Field(default=None, ge=0, description="At most this many words.")


class ConditionNode(Block):
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


class SliceNode(Block):
    """An entry of `slices:` one slice for each value of a column, or one slice with conditions."""

    by: ColumnName | None = Field(
        default=None,
        description="One slice for each value of this column, named `difficulty=hard`. A query with a list of values "
        "is in the slice of each. The columns are those that conditions can name.",
    )
    name: ColumnName | None = Field(default=None, description="With `where`: the slice's name.")
    where: ConditionNode | tuple[ConditionNode, ...] | None = Field(
        default=None, description="The queries of the slice: a condition, or a list of which all must hold."
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
