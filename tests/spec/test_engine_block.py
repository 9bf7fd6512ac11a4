"""The block `engine:` of a spec."""

from __future__ import annotations

import pytest

from rageval_spec import spec as specs
from rageval_spec.diagnostics import SpecError
from rageval_spec.engines.local import LocalNode
from rageval_spec.engines.ray import RayNode
from rageval_spec.plugin import EngineNode
from rageval_spec.spec.blocks.spec_node import Spec

TEXT = """
version: 1
name: one
datasets: {d: {use: jsonl, path: a.jsonl}}
systems: {s: {use: file, path: b.jsonl}}
metrics: [token_f1]
"""


def load(line: str) -> Spec:
    return specs.loads(TEXT + line, check_files=False)


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("", None),
        ("engine: local", LocalNode()),
        ("engine: {use: local, workers: 3}", LocalNode(workers=3)),
        ("engine: ray", RayNode()),
        ("engine: {use: ray, address: auto, cpus: 8}", RayNode(address="auto", cpus=8)),
        ("engine: {use: ray, runtime_env: {pip: [x]}}", RayNode(runtime_env={"pip": ["x"]})),
    ],
)
def test_a_word_or_a_block(line: str, node: EngineNode | None) -> None:
    assert load(line).engine == node


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("engine: raz", "unknown engine 'raz'; did you mean 'ray'?"),
        ("engine: {use: ray, cpu: 3}", "unknown key 'cpu'; did you mean 'cpus'?"),
        ("engine: {use: ray, cpus: 0}", "'cpus' must be at least 1"),
        ("engine: {address: auto}", "the key 'use' is missing; the words of 'engine:' are local, ray"),
        ("engine: 3", "expected a word or a block with 'use:', found the number 3"),
        ("engine: [ray]", "expected a word or a block with 'use:', found a list"),
        ("engine: dask", "unknown engine 'dask'; the words of 'engine:' are local, ray"),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        load(line)
    assert message in str(raised.value)


def test_no_number_depends_on_the_engine() -> None:
    assert load("engine: ray").digest == load("engine: {use: local, workers: 3}").digest == load("").digest
