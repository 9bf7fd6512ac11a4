"""`compare` and metrics that people's labels correct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.runner import Options, run
from tests.command_line import invoke
from tests.pipeline.labelling import write


def evaluate(folder: Path, name: str, **changes: Any) -> Evaluation:
    return run(write(folder, **changes), Options(output=folder / name)).evaluation


def compare(folder: Path) -> str:
    done = invoke("compare", folder / "before", folder / "after")
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def swap(folder: Path) -> None:
    """Let the system `a` answer as `b` did, and its labels be those of b's answers."""
    (folder / "a.jsonl").write_bytes((folder / "b.jsonl").read_bytes())
    header, *rows = (folder / "labels.csv").read_text().splitlines()
    own = [row.replace(",b,", ",a,") for row in rows if ",b," in row]
    (folder / "labels.csv").write_text("\n".join([header, *own]))


def test_the_difference_is_the_one_that_people_would_see(tmp_path: Path) -> None:
    both = evaluate(tmp_path, "both")
    evaluate(tmp_path, "before", systems=("a",))
    path = write(tmp_path, systems=("a",))
    swap(tmp_path)
    run(path, Options(output=tmp_path / "after"))
    (test,) = both.comparisons
    assert f"{test.difference:+.3f}".replace("-", "−") in compare(tmp_path).replace("-", "−")
    assert test.correction is not None and f"{test.correction.judged:+.3f}" not in compare(tmp_path)
    assert (
        "Holm-adjusted p. The numbers of token_f1 are corrected by people's labels; the test is a t test of the "
        "corrected difference."
    ) in compare(tmp_path)
    assert "permutation" not in compare(tmp_path)


def test_a_judges_mean_is_not_compared_with_a_corrected_one(tmp_path: Path) -> None:
    evaluate(tmp_path, "before", metrics=["token_f1"])
    evaluate(tmp_path, "after")
    assert "not compared: token_f1, because people's labels correct it only after" in compare(tmp_path)


def test_labels_without_a_digest_do_not_compare_answers(tmp_path: Path) -> None:
    for name in ("before", "after"):
        evaluate(tmp_path, name, columns="query_id,system,value")
    assert "not compared: token_f1, because its labels do not name the answers' digests" in compare(tmp_path)
