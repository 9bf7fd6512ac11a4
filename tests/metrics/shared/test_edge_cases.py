from __future__ import annotations

from rageval_spec import registry
from rageval_spec.metrics.shared import edge_cases

TEXTS = {name: text for name, text in vars(edge_cases).items() if name.isupper()}


def test_every_shared_edge_case_is_used_by_several_metrics() -> None:
    infos = [registry.load("metrics", word).info for word in registry.words("metrics")]
    for name, text in TEXTS.items():
        assert sum(any(text in case for case in info.edge_cases) for info in infos) >= 2, name
