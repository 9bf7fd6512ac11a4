"""What an evaluation records of questions that it did not ask."""

from __future__ import annotations

from rageval_spec.data.results import Results
from rageval_spec.data.stopping import Asked, Stopping
from tests.sample_evaluation import make_evaluation

PART = Asked("golden", 148, 500, "decided", "every gate was decided")


def test_a_dataset_is_found_by_name() -> None:
    stopping = Stopping(0.95, 30, 20, 7, (PART,))
    assert stopping.find("golden") is PART
    assert stopping.find("other") is None
    assert PART.is_part
    assert not Asked("golden", 500, 500, "all", "not every gate was decided earlier").is_part


def test_results_without_stopping_do_not_name_it() -> None:
    results = Results.of(make_evaluation())
    assert "stopping" not in results.content()
    assert Results.parse(results.dump(), "results.json").stopping is None
