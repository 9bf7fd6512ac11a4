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
        ("engine: {use: ray, address: 'ray://head:10001'}", RayNode(address="ray://head:10001")),
        ("engine: {use: ray, address: '[::1]:6379'}", RayNode(address="[::1]:6379")),
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
        ("engine: {use: ray, address: 'http://head:8265'}", "is no address of a Ray cluster; write ray://head:10001"),
        (
            "engine: {use: ray, address: 'RAY://head:10001'}",
            "'RAY://head:10001' is no address of a Ray cluster; write ray://head:10001",
        ),
        ("engine: {use: ray, address: 'ray://head'}", "write ray://head:10001"),
        ("engine: {use: ray, address: 'ray://head:10001/'}", "write ray://head:10001"),
        ("engine: {use: ray, address: 10.0.0.1}", "'10.0.0.1' is no address of a Ray cluster; write 10.0.0.1:6379"),
        ("engine: {use: ray, address: '10.0.0.1:70000'}", "write 10.0.0.1:6379"),
        ("engine: {use: ray, address: ' head:6379 '}", "write head:6379"),
        ("engine: {use: ray, address: Auto}", "'Auto' is no address of a Ray cluster; write auto"),
        ("engine: {use: ray, address: 'my head:6379'}", "write local, auto, ray://host:10001 or host:6379"),
        (
            "engine: {use: ray, address: 'ray://me:secret@head:10001'}",
            "write local, auto, ray://host:10001 or host:6379",
        ),
        ("engine: dask", "unknown engine 'dask'; the words of 'engine:' are local, ray"),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        load(line)
    assert message in str(raised.value)
    assert raised.value.diagnostics[0].position.line == TEXT.count("\n") + 1


def test_no_number_depends_on_the_engine() -> None:
    assert load("engine: ray").digest == load("engine: {use: local, workers: 3}").digest == load("").digest
