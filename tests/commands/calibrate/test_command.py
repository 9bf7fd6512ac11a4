"""The options of `calibrate`."""

from __future__ import annotations

import random
from pathlib import Path

from tests.answered_evaluation import answered, sample, save, value
from tests.command_line import invoke
from tests.commands.label_files import write_labels


def test_calibrate_takes_results_labels_and_options(tmp_path: Path) -> None:
    values = [value(f"q{number}", "faithfulness", number / 4) for number in range(4)]
    results = str(save(answered(values, [sample(f"q{number}") for number in range(4)]), tmp_path / "out"))
    columns = ("--column", "query_id=nr", "--column", "annotator=who")
    result = invoke("calibrate", results, "--labels", write_labels(tmp_path), *columns, "--format", "json")
    assert result.exit_code == 0
    assert '"items": 4' in result.output
    missing = invoke("calibrate", results)
    assert missing.exit_code == 2
    assert "--labels" in missing.output


def test_options_of_steps_need_the_spec(tmp_path: Path) -> None:
    labels = write_labels(tmp_path)
    for option in (("--agreement", "0.9"), ("--against", "last"), ("--control", "crc")):
        result = invoke("calibrate", "--labels", labels, *option)
        assert result.exit_code == 2
        assert "--agreement, --against and --control need a spec with a cascade" in result.output


def test_orders_are_asked_by_drift() -> None:
    result = invoke("calibrate", "spec.yaml", "--orders", "100")
    assert result.exit_code == 2
    assert "rageval-spec drift anchors.json spec.yaml --reversed" in result.output
    assert "--orders" not in invoke("calibrate", "--help").output


def test_calibrate_takes_the_spec_of_a_cascade_in_place_of_results(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("version: 1\nname: none\n")
    result = invoke("calibrate", str(spec), "--agreement", "0.9", "--against", "last")
    assert "spec.yaml" in result.output and "need a spec" not in result.output


def test_the_order_of_the_labels_changes_no_number(tmp_path: Path) -> None:
    values = [value(f"q{number}", "faithfulness", (number * 7 % 40) / 40) for number in range(40)]
    results = str(save(answered(values, [sample(f"q{number}") for number in range(40)]), tmp_path / "out"))
    rows = [f"q{number},faithfulness,{int(number % 3 == 0)},{who}" for number in range(40) for who in ("ann", "bob")]
    found = set()
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        labels = tmp_path / "labels.csv"
        labels.write_text("\n".join(["query_id,metric,value,annotator", *rows]) + "\n")
        result = invoke("calibrate", results, "--labels", labels, "--format", "json")
        assert result.exit_code == 0, result.output
        agreed = invoke("review", "agreement", labels, "--format", "json")
        assert agreed.exit_code == 0, agreed.output
        found.add((result.output, agreed.output))
    assert len(found) == 1
