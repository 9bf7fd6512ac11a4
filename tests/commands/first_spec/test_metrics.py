from __future__ import annotations

from pathlib import Path

from rageval_spec.commands.first_spec.command import TOOLS
from rageval_spec.commands.first_spec.metrics import JUDGED, LACKS, NAMES, OFFERS
from tests.command_line import invoke
from tests.commands.first_spec.files import ANSWERS, write_rows


def test_every_metric_that_is_offered_exists(tmp_path: Path) -> None:
    judged = [offer.line.replace("strict}", f"strict, as: judged{place}}}") for place, offer in enumerate(JUDGED)]
    metrics = ", ".join([*(offer.line for offer in OFFERS), *judged])
    path = write_rows(tmp_path / "answers.jsonl", ANSWERS)
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: x\ndatasets: {g: {use: jsonl, path: answers.jsonl}}\n"
        f"systems: {{s: {{use: file, path: {path.name}}}}}\n"
        "models: {m: {use: chat, model: x, base_url: 'http://127.0.0.1:9/v1'}}\n"
        "judges: {strict: {use: claims, model: m}}\n"
        f"metrics: [{metrics}]\n"
    )
    assert invoke("validate", tmp_path / "spec.yaml").exit_code == 0


def test_every_part_has_words_for_its_absence_and_every_name_of_another_tool_a_metric() -> None:
    assert {part for offer in (*OFFERS, *JUDGED) for part in offer.needs} <= LACKS.keys()
    assert NAMES.keys() == {*TOOLS} - {"beir"}
    for name in {ours for names in NAMES.values() for ours in names.values()}:
        assert invoke("metrics", "show", name).exit_code == 0, name
