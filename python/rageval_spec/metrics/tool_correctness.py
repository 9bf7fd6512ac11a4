from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.data.traces import Step
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricInfo, MetricNode
from rageval_spec.recorded.answers_and_steps import INPUT_KEYS, STEP_PARTS, read_steps
from rageval_spec.recorded.values import open_text
from rageval_spec.wording import count_noun, list_names

_COLUMNS = ("expected_tools", "expectedTools", "reference_tool_calls", "expected_calls")


class ToolCorrectnessNode(MetricNode):
    column: str | None = Field(
        default=None,
        min_length=1,
        description="The column of the questions with the expected calls: names, or objects with `name` and "
        "`arguments`. Default: `expected_tools`, `reference_tool_calls` or `expected_calls`.",
    )
    order: Literal["ignore", "strict"] = Field(
        default="ignore", description="strict: only calls in the expected order match; others may come between them."
    )
    arguments: Literal["exact", "subset", "ignore"] = Field(
        default="exact",
        description="exact: a call has the expected arguments and no others; subset: it may have others; ignore: names "
        "are enough, as they always are for an expected call without arguments.",
    )
    ignore: tuple[str, ...] = Field(default=(), description="The names of tools whose calls do not count.")


class ToolCorrectness(AnswerMetric[ToolCorrectnessNode]):
    group = "answers"
    needs = frozenset({"steps"})
    reads_contexts = False
    known_as = ("tool_call_accuracy", "tool_call_f1", "tool_selection", "tool_use", "argument_correctness")
    info = MetricInfo(
        summary="Whether an agent called the tools that it should have called, with the right arguments.",
        formula="tool_correctness = 2 m / (expected calls + calls made), 1 if both are 0; m = the most expected calls "
        "that can each be paired with a call of its own; order=strict: the longest common subsequence",
        edge_cases=(
            "no steps recorded: no value; an empty list of steps: no call was made",
            "question without expected calls: no value; with an empty list of them: 1 without calls, else 0",
            "arguments: equal as JSON, so that 1 is 1.0 and is not true; not recorded by the steps: no value",
            "call with one wrong argument: does not match; RAGAS's accuracy and DeepEval give it a share",
            "call that failed: counts as made; call without a name: no value",
        ),
        source="RAGAS documentation, tool call F1 (2025; there over distinct calls) and tool call accuracy; DeepEval "
        "documentation, tool correctness (there extra calls do not count)",
    )

    def question_columns(self) -> Sequence[tuple[tuple[str | int, ...], str]]:
        return () if self.node.column is None else ((("column",), self.node.column),)

    def compute(self, samples: Sequence[Sample]) -> Measured:
        return Measured([*map(self._measure, samples)])

    def _measure(self, sample: Sample) -> Measurement:
        columns, names = sample.columns or {}, (self.node.column,) if self.node.column else _COLUMNS
        name = next((one for one in names if columns.get(one) not in (None, "")), None)
        if name is None:
            return Measurement.unscorable(f"the query has no expected calls ('{names[0]}')")
        try:
            expected = _read_expected(columns[name])
        except ValueError as error:
            return Measurement.error(f"the column '{name}' {error}")
        wanted, numbered = {one.name for one in expected}, enumerate(sample.steps or (), 1)
        made = {n: one for n, one in numbered if _is_call(one, wanted) and one.name not in self.node.ignore}
        if number := next((n for n, one in made.items() if not one.name), None):
            return Measurement.unscorable(f"step {number} is a call without a name")
        can = [[number for number, one in made.items() if self._matches(want, one)] for want in expected]
        pairs = (_pair_in_order if self.node.order == "strict" else _pair)(can)
        missing = [want for place, want in enumerate(expected) if place not in pairs]
        extra = [one for number, one in made.items() if number not in pairs.values()]
        unread = {one.name for one in extra if one.input is None and self.node.arguments != "ignore"}
        if lacking := next((one.name for one in missing if one.input is not None and one.name in unread), None):
            hint = "write 'arguments: ignore'"
            return Measurement.unscorable(f"the steps do not record the arguments of '{lacking}'; {hint}")
        told: list[tuple[Step, int | None, str]] = [(one, None, "missing") for one in missing]
        told += [(one, n, "matched" if n in pairs.values() else "extra") for n, one in made.items()]
        calls = [{"name": one.name, "arguments": one.input, "step": n, "state": state} for one, n, state in told]
        value = 2 * len(pairs) / (len(expected) + len(made)) if expected or made else 1.0
        return Measurement.scored(value, _explain(len(expected), missing, extra), {"calls": calls})

    def _matches(self, expected: Step, made: Step) -> bool:
        if expected.name != made.name:
            return False
        if expected.input is None or self.node.arguments == "ignore":
            return True
        wanted, given = open_text(expected.input or "{}"), open_text(made.input or "{}")
        if self.node.arguments == "subset" and isinstance(wanted, Mapping) and isinstance(given, Mapping):
            given = {key: value for key, value in given.items() if key in wanted}
        return bool(_freeze(wanted) == _freeze(given))


def _read_expected(value: Any) -> tuple[Step, ...]:
    """The expected calls. Raises ValueError: the value holds something else."""
    items = open_text(value)
    if not isinstance(items, list | tuple):
        raise ValueError('must hold a list of calls, such as ["search"] or [{"name": "search", "arguments": {}}]')
    for one in (one for one in items if isinstance(one, Mapping)):
        known = {**one, **inner} if isinstance(inner := one.get("function"), Mapping) else one
        keys = [key for key, held in known.items() if held is not None]
        given, unknown = [key for key in keys if key in INPUT_KEYS], [key for key in keys if key not in STEP_PARTS]
        if given[1:]:
            raise ValueError(f"holds a call with both '{given[0]}' and '{given[1]}'; keep one")
        if unknown and not given:
            raise ValueError(f"holds a call with the unknown key '{unknown[0]}'; write 'arguments' if it has them")
    steps = read_steps([{"name": one} if isinstance(one, str) else one for one in items], "holds a wrong call: ")
    if not all(one.name for one in steps):
        raise ValueError("holds a call without a 'name'")
    return steps


def _is_call(step: Step, expected: Container[str]) -> bool:
    """Whether a step is a call. A tool that searches is a retrieval; one without a name is a part of its tool."""
    if step.kind == "other":
        return step.name in expected if step.name else step.input is not None
    return step.kind == "tool" or (step.kind in ("retrieval", "rerank") and step.name != "")


def _freeze(value: Any) -> Any:
    """A value in JSON types as one that Python compares as JSON: 1 is 1.0, and neither is true."""
    if isinstance(value, Mapping):
        return frozenset((key, _freeze(one)) for key, one in value.items())
    return tuple(map(_freeze, value)) if isinstance(value, list) else (isinstance(value, bool), value)


def _pair(can: Sequence[Sequence[int]]) -> dict[int, int]:
    """The most pairs of an expected call and a call that was made: a largest matching, by augmenting paths."""
    taken: dict[int, int] = {}

    def find(want: int, tried: set[int]) -> bool:
        for number in can[want]:
            if number not in tried:
                tried.add(number)
                if number not in taken or find(taken[number], tried):
                    taken[number] = want
                    return True
        return False

    for want in range(len(can)):
        find(want, set())
    return {want: number for number, want in taken.items()}


def _pair_in_order(can: Sequence[Sequence[int]]) -> dict[int, int]:
    """The most pairs that do not cross: a longest common subsequence (Hunt and Szymanski, 1977)."""
    chains: list[tuple[tuple[int, int], ...]] = [()]  # of each length the chain that ends soonest
    for want, places in enumerate(can):
        for place in reversed(places):
            at = bisect_left(chains, place, 1, key=lambda chain: chain[-1][1])
            chains[at : at + 1] = [(*chains[at - 1], (want, place))]
    return dict(chains[-1])


def _explain(expected: int, missing: Sequence[Step], extra: Sequence[Step]) -> str | None:
    """`1 of 2 expected calls made; missing: refund; extra: search`; None if all is as expected."""
    lacking, more = (dict.fromkeys(one.name for one in of) for of in (missing, extra))
    parts = {"missing": lacking.keys() - more.keys(), "extra": more.keys() - lacking.keys()}
    parts["with other arguments or out of order"] = lacking.keys() & more.keys()
    named = [f"{what}: {list_names([one for one in lacking | more if one in of])}" for what, of in parts.items() if of]
    made = f"{expected - len(missing)} of {count_noun(expected, 'expected call')} made"
    return "; ".join([made if expected else "no call is expected", *named]) if named else None


PLUGIN = ToolCorrectness
