"""Evaluate retrieval and RAG systems: exact numbers, intervals, and a verdict a pipeline can act on.

>>> import rageval_spec
>>> qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}}
>>> run = {"q1": {"d2": 1.5, "d1": 1.2, "d4": 0.3}}
>>> rageval_spec.evaluate(qrels, run, ["ndcg@10", "rr"]).means["rr"]
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "Calibrations": ("rageval_spec.api.calibrations", "Calibrations"),
    "Comparisons": ("rageval_spec.api.rankings", "Comparisons"),
    "FinishedEvaluation": ("rageval_spec.api.finished_evaluation", "FinishedEvaluation"),
    "RagevalError": ("rageval_spec.errors", "RagevalError"),
    "Results": ("rageval_spec.api.rankings", "Results"),
    "SpecError": ("rageval_spec.diagnostics", "SpecError"),
    "average_overlap": ("rageval_spec.api.rankings", "average_overlap"),
    "calibrate": ("rageval_spec.api.calibrations", "calibrate"),
    "compare": ("rageval_spec.api.rankings", "compare"),
    "cosine": ("rageval_spec.kernels", "cosine_rows"),
    "cosine_matrix": ("rageval_spec.kernels", "cosine_matrix"),
    "evaluate": ("rageval_spec.api.rankings", "evaluate"),
    "judge": ("rageval_spec.api.evaluations", "judge"),
    "load_results": ("rageval_spec.api.finished_evaluation", "load_results"),
    "run": ("rageval_spec.api.evaluations", "run"),
    "top_k": ("rageval_spec.kernels", "top_k"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the package costs next to nothing."""
    if name == "__version__":
        from rageval_spec.kernels import version

        return version()
    if name in _PLACES:
        module, its_name = _PLACES[name]
        return getattr(import_module(module), its_name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return __all__
