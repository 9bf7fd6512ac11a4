"""What people would say, in every report: the judge's number, the corrected one, the labels, and why one is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.reports.shared.corrected import HEADER, explain_corrections, list_corrected
from rageval_spec.reports.shared.legend import describe_legend
from rageval_spec.runner import Options, run
from tests.browser import open_page
from tests.command_line import invoke
from tests.pipeline.labelling import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a spec with labels, with every report."""
    folder = tmp_path_factory.mktemp("corrected")
    reports = ["markdown", "html", "json", "junit", "csv", "openmetrics"]
    gates = [{"metric": "token_f1", "min": 0.1, "on": "lower"}]
    path = write(folder, metrics=[{"use": "token_f1", "labels": "people"}, "exact_match"], gates=gates, reports=reports)
    run(path, Options(output=folder / "out"))
    return folder


@pytest.fixture(scope="module")
def evaluation(folder: Path) -> Evaluation:
    return run(folder / "spec.yaml", Options(output=None, no_history=True)).evaluation


def test_a_row_for_each_mean_and_each_difference(evaluation: Evaluation) -> None:
    rows = list_corrected(evaluation, 3)
    assert [row[0] for row in rows] == ["token_f1 of a", "token_f1 of b", "token_f1 of b vs a"]
    a = evaluation.aggregates[0]
    assert a.correction is not None and a.mean is not None and a.interval is not None
    assert rows[0][1] == f"{a.correction.judged:.3f}"
    assert rows[0][2] == f"{a.mean:.3f} [{a.interval.low:.3f}, {a.interval.high:.3f}]"
    assert rows[0][3].startswith(f"{a.correction.labelled:.3f} [") and rows[0][4] == "20"
    assert rows[2][1].startswith(("+", "-"))
    (sentence,) = explain_corrections(evaluation)
    assert "(prediction-powered inference, PPI++)" in sentence


def test_the_legend_tells_the_two_kinds_of_intervals_and_tests_apart(evaluation: Evaluation) -> None:
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["[ ]"] == "95% interval of what people would say; for exact_match a 95% bootstrap interval"
    assert "paired permutation test; for token_f1 a t test of the corrected difference; Holm" in legend["▲ ▼"]


def test_the_terminal_and_markdown_show_the_table(folder: Path) -> None:
    done = invoke("run", folder / "spec.yaml", "-o", folder / "again", "--set", "reports=[terminal]")
    assert "What people would say" in done.stdout
    assert "token_f1 of b vs a" in done.stdout and " ".join(HEADER).split()[0] in done.stdout
    text = (folder / "out" / "report.md").read_text()
    assert "**What people would say**" in text and "| `token_f1 of a` |" in text


def test_the_page_shows_the_table(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#corrected-title")
        section = opened.page.locator("section[aria-labelledby=corrected-title]")
        assert section.locator("thead th").all_inner_texts() == list(HEADER)
        assert section.locator("tbody th").all_inner_texts() == ["token_f1 of a", "token_f1 of b", "token_f1 of b vs a"]
        assert opened.seen == []


def test_a_missing_number_is_a_dash_and_its_reason_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, labelled=5, reports=["terminal"], gates=[{"metric": "token_f1", "min": 0.1}])
    done = invoke("run", path, "-o", tmp_path / "out")
    assert done.exit_code == 1
    told = " ".join(done.stdout.split())
    assert "token_f1 – ✗ – ✗ 40/40" in told
    assert (
        "token_f1 of a, token_f1 of b: no corrected mean, because only 5 answers have labels, where at least 10 are "
        "needed." in told
    )
    assert "the labels 'people' cannot correct it: only 5 answers have labels" in told


def test_specs_without_labels_have_no_such_table(tmp_path: Path) -> None:
    plain = run(write(tmp_path, metrics=["token_f1"]), Options(output=None, no_history=True)).evaluation
    assert list_corrected(plain, 3) == []


def test_a_question_shows_what_people_say_beside_the_judges_value(browser: Browser, folder: Path) -> None:
    told = " ".join(invoke("show", "q0", folder / "out").stdout.split())
    assert told.count("people say 1.000") == 1 and told.count("people say 0.000") == 1
    assert invoke("show", "q39", folder / "out").stdout.count("people say") == 0
    with open_page(browser, folder / "out" / "report.html", "#q=q1&system=a") as opened:
        opened.page.wait_for_selector(".values")
        text = opened.page.locator(".values").inner_text()
        assert "people say 1.0" in text and opened.seen == []


def test_slices_of_metrics_with_labels_are_said_not_to_be_tested(browser: Browser, tmp_path: Path) -> None:
    done = invoke("run", write(tmp_path, slices=["part"], reports=["terminal", "html"]), "-o", tmp_path / "out")
    said = "Not tested, because people's labels correct it: token_f1."
    assert said in done.stdout
    with open_page(browser, tmp_path / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#weakest-title")
        assert opened.page.get_by_text(said).is_visible() and opened.seen == []
