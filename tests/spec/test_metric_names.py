"""Bare names of metrics that are not measures of the kernel."""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

SPEC = "version: 1\ndatasets: {d: {use: beir, path: d}}\nsystems: {s: {use: bm25}}\nmetrics: ['%s']\n"


def test_a_percentile_can_be_written_bare() -> None:
    (metric,) = loads(SPEC % "latency@p95", check_files=False).metrics
    assert (metric.name, metric.node.model_dump()["percentile"]) == ("latency@p95", 95)


@pytest.mark.parametrize("text", ["latency@p0", "latency@p", "latency@95", "bleu@p95", "latenzy@p95"])
def test_text_that_only_looks_like_a_percentile_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SPEC % text, check_files=False)
    assert caught.value.diagnostics[0].position.line == 4
