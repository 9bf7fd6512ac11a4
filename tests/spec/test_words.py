from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

TEXT = """\
version: 1
datasets: {d: %s}
systems: {s: %s}
models: {m: %s}
metrics: [%s]
"""


def fault(
    dataset: str = "{use: trec, qrels: q}", system: str = "{use: file, path: r}",
    model: str = "{use: onnx, model: minilm}", metric: str = "rr",
) -> str:  # fmt: skip
    with pytest.raises(SpecError) as caught:
        loads(TEXT % (dataset, system, model, metric), check_files=False)
    (found,) = caught.value.diagnostics
    return f"{found.message}; {found.hint}"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{use: elasticsearch}", "unknown system 'elasticsearch'; did you mean 'bm25'?"),
        ("{use: cross-encoder}", "unknown system 'cross-encoder'; did you mean 'rerank'?"),
        ("{use: minilm}", "unknown system 'minilm'; 'minilm' is a model: write {use: dense, model: minilm}"),
        ("{use: ndcg}", "unknown system 'ndcg'; it is a word of 'metrics:'; the words of 'systems:' are"),
        ("{path: r.run}", "the key 'use' is missing; the words of 'systems:' are"),
        (
            "runs/a.run",
            "expected a block with 'use:', found the text 'runs/a.run'; write {use: file, path: runs/",
        ),
        ("bm25", "expected a block with 'use:', found the text 'bm25'; write {use: bm25}"),
        ("{use: 3}", "expected a word of systems, found the number 3; the words of 'systems:' are"),
    ],
)
def test_systems(block: str, message: str) -> None:
    assert fault(system=block).startswith(message)


def test_a_name_in_place_of_a_model_block_suggests_the_block() -> None:
    assert "write {use: onnx, model: intfloat/e5}" in fault(model="intfloat/e5")


def test_measures_with_a_cutoff_are_written_without_use() -> None:
    assert fault(metric="{use: ndcg@10}") == (
        "unknown metric 'ndcg@10'; write a measure with its cutoff without 'use:': - ndcg@10"
    )
