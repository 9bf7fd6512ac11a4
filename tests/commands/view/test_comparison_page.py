import re
from pathlib import Path
from statistics import fmean

import pytest

from rageval_spec.commands.compare.changes import compare_results
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.drawing.question_order import Filter
from tests.answered_evaluation import answered, sample, value
from tests.history.records import make_id
from tests.local_view.viewing import make_project, save, viewing


def test_records_stand_beside_the_oldest_with_the_numbers_of_compare(tmp_path: Path) -> None:
    first, second, third = make_project(tmp_path)
    with viewing(tmp_path) as client:
        status, page = client.get(f"/compare?record={third}&record={first}&record={second}")
    assert status == 200
    assert "Compared with" in page
    assert re.search(r"<h2>(<span>)?Numbers", page)
    assert f"/record/{first}/#q=q1" in page
    assert f"/record/{second}/#q=q1" in page


def make_answers(wrong: set[int], count: int = 60) -> Evaluation:
    numbers = [0.1 if n in wrong else 0.9 for n in range(count)]
    values = [value(f"q{n:03}", "faithfulness", number) for n, number in enumerate(numbers)]
    mean = Aggregate("golden", "v1", "faithfulness", fmean(numbers), None, count, count)
    return answered(values, [sample(f"q{n:03}") for n in range(count)], aggregates=(mean,))


def test_flipped_questions_are_those_of_compare_and_their_tests_too(tmp_path: Path) -> None:
    before, after = make_answers({1, 2}), make_answers({2, *range(10, 40)})
    save(before, tmp_path / "before", 1, "before")
    save(after, tmp_path / "after", 2, "after")
    with viewing(tmp_path, tmp_path / "before", tmp_path / "after") as client:
        page = client.get(f"/compare?record={make_id(1)}&record={make_id(2)}")[1]
    found = compare_results(NamedResults("a", before), NamedResults("b", after), Filter())
    assert found.questions.counts["broken"] == 30
    broken = page.partition("Broken questions")[2].partition("Fixed questions")[0]
    assert len(set(re.findall(r"#q=(q\d+)", broken))) == 30
    assert set(re.findall(r"#q=(q\d+)", page.partition("Fixed questions")[2])) == {"q001"}
    (change,) = found.metrics
    assert change.comparison is not None
    assert f"{change.difference:.3f}".replace("-", "") in page
    assert "▼ worse" in page
    assert change.comparison.interval is not None
    assert f"[{change.comparison.interval.low:.3f}, {change.comparison.interval.high:.3f}]" in page


@pytest.mark.parametrize("query", ["", "?record=a", "?" + "&".join(f"record={n}" for n in range(21))])
def test_too_few_or_too_many_records_are_told(tmp_path: Path, query: str) -> None:
    with viewing(tmp_path) as client:
        status, page = client.get(f"/compare{query}")
    assert status == 200
    assert "Choose two or more" in page


def test_records_without_anything_in_common_are_told(tmp_path: Path) -> None:
    save(make_answers({1}), tmp_path / "a", 1, "a")
    other = answered([value("q1", "faithfulness", 0.5, dataset="elsewhere")], [sample("q1", dataset="elsewhere")])
    save(other, tmp_path / "b", 2, "b")
    with viewing(tmp_path, tmp_path / "a", tmp_path / "b") as client:
        status, page = client.get(f"/compare?record={make_id(1)}&record={make_id(2)}")
    assert status == 200
    assert "have no dataset in common" in page
