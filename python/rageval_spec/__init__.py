"""Evaluate retrieval and RAG systems: exact numbers, intervals, and a verdict a pipeline can act on.

>>> import rageval_spec
>>> qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}}
>>> run = {"q1": {"d2": 1.5, "d1": 1.2, "d4": 0.3}}
>>> rageval_spec.evaluate(qrels, run, ["ndcg@10", "rr"]).means["rr"]
0.5
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rageval_spec.api.calibrations import Calibrations, calibrate
    from rageval_spec.api.evaluations import judge, run
    from rageval_spec.api.finished_evaluation import FinishedEvaluation, load_results
    from rageval_spec.api.rankings import Comparisons, Results, average_overlap, compare, evaluate
    from rageval_spec.diagnostics import SpecError
    from rageval_spec.errors import RagevalError
    from rageval_spec.kernels import cosine_matrix, top_k
    from rageval_spec.kernels import cosine_rows as cosine

__all__ = [
    "Calibrations", "Comparisons", "FinishedEvaluation", "RagevalError", "Results", "SpecError", "__version__",
    "average_overlap", "calibrate", "compare", "cosine", "cosine_matrix", "evaluate", "judge", "load_results", "run",
    "top_k",
]  # fmt: skip

_PLACES = {
    "api.calibrations": ("Calibrations", "calibrate"),
    "api.evaluations": ("judge", "run"),
    "api.finished_evaluation": ("FinishedEvaluation", "load_results"),
    "api.rankings": ("Comparisons", "Results", "average_overlap", "compare", "evaluate"),
    "diagnostics": ("SpecError",),
    "errors": ("RagevalError",),
    "kernels": ("cosine", "cosine_matrix", "top_k"),
}
"""The modules that have the public names."""
_OTHER_NAMES = {"cosine": "cosine_rows"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the package costs next to nothing."""
    if name == "__version__":
        from rageval_spec.kernels import version

        return version()
    from importlib import import_module

    module = next((module for module, names in _PLACES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), _OTHER_NAMES.get(name, name))


def __dir__() -> list[str]:
    """The public names."""
    return __all__
