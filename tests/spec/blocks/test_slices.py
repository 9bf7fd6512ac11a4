"""Entries of `slices:` name the columns that they read.

Slices that cannot be, and gates on slices that no entry makes, are refused with what to write instead.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import Spec, loads
from rageval_spec.spec.blocks.slices import ConditionNode, SliceNode


def test_columns_are_those_of_by_or_of_all_conditions() -> None:
    conditions = (
        ConditionNode(column="hops", min=2),
        ConditionNode(column="kind", equal="a"),
        ConditionNode(column="hops", max=9),
    )
    assert SliceNode(by="level").columns == ("level",)
    assert SliceNode(name="n", where=conditions).columns == ("hops", "kind")
    assert SliceNode(name="n", where=conditions[0]).conditions == conditions[:1]
    assert SliceNode(by="level").conditions == ()


def test_one_of_several_values_is_written_as_in() -> None:
    assert ConditionNode.model_validate({"column": "x", "in": ["a", 2, True]}).among == ("a", 2, True)
    with pytest.raises(ValidationError, match="at least 1 item"):
        ConditionNode.model_validate({"column": "x", "in": []})


TEXT = """\
version: 1
datasets: {d: {use: trec, qrels: q.txt}}
systems: {a: {use: file, path: a.run}}
metrics: [ndcg@10]
slices: [%s]
gates: [%s]
"""


def load(slices: str, gates: str = "") -> Spec:
    return loads(TEXT % (slices, gates), check_files=False)


def faults(slices: str, gates: str = "") -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(slices, gates)
    return [
        f"{found.position.line}:{found.position.column}: {found.message}" + (f"; {found.hint}" if found.hint else "")
        for found in caught.value.diagnostics
    ]


def test_a_bare_column_is_a_block_with_by() -> None:
    bare, block = load("difficulty").slices, load("{by: difficulty}").slices
    assert bare == block
    assert (bare[0].by, bare[0].min_queries, bare[0].columns) == ("difficulty", 1, ("difficulty",))


def test_conditions_are_one_block_or_a_list() -> None:
    (one,) = load("{name: long, where: {column: question, words: {min: 12}}}").slices
    (two,) = load("{name: long, where: [{column: hops, min: 2}, {column: kind, in: [a, 1, true]}]}").slices
    assert one.columns == ("question",)
    assert two.columns == ("hops", "kind")
    assert two.conditions[1].among == ("a", 1, True)


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ("{min_queries: 3}", "5:10: the slice has neither 'by' nor 'where'; write {by: difficulty}, or"),
        ("{by: a, where: {column: b, min: 1}}", "5:18: a slice has 'by' or 'where', not both"),
        ("{by: a, name: b}", "5:24: 'name' belongs to 'where'"),
        ("{where: {column: b, min: 1}}", "5:10: a slice with 'where' needs a name; add 'name:'"),
        ("{name: n, where: {column: b}}", "5:36: the condition on 'b' tests nothing; add 'equal', 'in'"),
        ("{name: n, where: [{column: b, min: 2, max: 1}]}", "5:45: no value is at least 2 and at most 1"),
        ("{name: n, where: {column: b, words: {}}}", "5:39: 'words' has no bound"),
        ("{name: n, where: {column: b, words: {min: 3, max: 2}}}", "5:52: no text has at least 3 and at most 2 words"),
        ("a, {by: b}, a", "5:22: the column 'a' is listed twice"),
        ("{name: n, where: {column: b, min: 1}}, {name: n, where: {column: b, min: 2}}", "5:56: the slice 'n' is"),
        ("b, {name: b=1, where: {column: b, min: 1}}", "5:20: 'b=1' is also a name for slices by a column"),
        ("{bye: difficulty}", "5:11: unknown key 'bye'; did you mean 'by'?"),
        ("{name: n, where: {colum: b, min: 1}}", "5:28: unknown key 'colum'; did you mean 'column'?"),
        ("{name: n, where: {column: b, min: low}}", "5:44: expected a number, found the text 'low'"),
        ("[a]", "5:10: expected text or a mapping, found a list"),
    ],
)
def test_slices_that_cannot_be_are_refused(slices: str, message: str) -> None:
    assert any(found.startswith(message) for found in faults(slices)), faults(slices)


@pytest.mark.parametrize("name", ["level", "level=hard", "level=a=b", "long"])
def test_a_gate_can_name_a_slice_or_all_slices_by_a_column(name: str) -> None:
    slices = "level, {name: long, where: {column: question, words: {min: 12}}}"
    assert load(slices, f"{{metric: ndcg@10, min: 0, slice: {name}}}").gates[0].slice == name


@pytest.mark.parametrize(
    ("slices", "name", "hint"),
    [
        ("level", "levle=hard", "did you mean 'level=hard'?"),
        ("level", "levle", "did you mean 'level'?"),
        ("{name: long, where: {column: question, words: {min: 12}}}", "lang", "did you mean 'long'?"),
        ("level", "topic=x", "there is level=..."),
        ("", "topic=x", "add 'slices: [topic]'"),
    ],
)
def test_a_gate_on_a_slice_that_no_entry_makes_is_refused(slices: str, name: str, hint: str) -> None:
    (found,) = faults(slices, f"{{metric: ndcg@10, min: 0, slice: {name}}}")
    assert found.startswith(f"6:42: the spec has no slice '{name}'; {hint}")


def test_a_gate_is_not_blamed_for_a_wrong_slice() -> None:
    (found,) = faults("{bye: level}", "{metric: ndcg@10, min: 0, slice: level}")
    assert "unknown key 'bye'" in found


def test_slices_are_part_of_the_digest_only_where_there_are_some() -> None:
    without = loads(TEXT.replace("slices: [%s]\n", "") % "{metric: ndcg@10, min: 0}", check_files=False)
    assert load("", "{metric: ndcg@10, min: 0}").digest == without.digest
    assert load("level", "{metric: ndcg@10, min: 0}").digest != without.digest
    assert load("level", "{metric: ndcg@10, min: 0, slice: level}").digest != load("level").digest
