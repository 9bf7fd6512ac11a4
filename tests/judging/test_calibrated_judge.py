"""A judge with a calibration gives calibrated scores, and only its own calibration is used.

A `calibration.json` is read whole or refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import UsedCalibration
from rageval_spec.data.findings import Failed, Finding
from rageval_spec.data.judge_calibration import MOST_BYTES, ScoreMap
from rageval_spec.errors import DataError
from rageval_spec.judging.calibrated_judge import (
    CalibratedJudge,
    digest_calibration,
    find_entries,
    read_calibration,
)
from rageval_spec.judging.composition import repeat_judge
from rageval_spec.pipeline.planning.spec_plugins import apply_calibration
from rageval_spec.plugin import Context, Judge, Plugin
from tests.judge_calibrations import LABELLED, LINE, describe, write
from tests.judges.fakes import (
    FAITHFULNESS,
    PRECISION,
    RUBRIC,
    Said,
    Scripted,
    ScriptedNode,
    claim,
    finding_of,
    samples_for,
    scores_of,
)

SAID: dict[str, Said] = {"a": 0.1, "b": 0.5, "c": 0.7, "d": None, "e": Failed("timeout")}


def calibrated(folder: Path, *entries: Any, use: Any = "calibration.json", said: Any = None, **node: Any) -> Any:
    """A scripted judge named `fast` with a calibration of these entries, by default one that fits it."""
    if not (folder / "calibration.json").exists():
        write(folder / "calibration.json", *(entries or (describe(Scripted("fast", {}), FAITHFULNESS),)))
    judge = Scripted("fast", SAID if said is None else said, node=ScriptedNode(use="scripted", calibration=use, **node))
    judge.context = replace(judge.context, folder=folder)
    return apply_calibration(judge)


def asked(judge: Any, criterion: Any = FAITHFULNESS, ids: str = "abcde") -> Any:
    return judge.assess(criterion, samples_for(*ids))


def test_a_judge_without_a_calibration_is_left_alone() -> None:
    judge = Scripted("fast", {})
    assert apply_calibration(judge) is judge
    assert find_entries(judge) == {}
    assert digest_calibration(judge) is None


def test_scores_become_probabilities_and_a_note_says_so(tmp_path: Path) -> None:
    found = asked(calibrated(tmp_path))
    assert scores_of(found) == [0.0, pytest.approx(0.6), 0.8, None, "timeout"]
    assert [note.message for note in found.notes] == ["the judge 'fast' is calibrated with 60 labels of people"]


@pytest.mark.parametrize(("score", "scores"), [("decision", [0, 1, 1]), ("guarantee", [0, 0, 1])])
def test_scores_become_decisions(tmp_path: Path, score: str, scores: list[float]) -> None:
    use = {"path": "calibration.json", "score": score}
    assert scores_of(asked(calibrated(tmp_path, use=use), ids="abc")) == scores


def test_without_a_map_scores_stay_and_the_note_says_why(tmp_path: Path) -> None:
    found = asked(calibrated(tmp_path, describe(Scripted("fast", {}), FAITHFULNESS, map=None)), ids="abc")
    assert scores_of(found) == [0.1, 0.5, 0.7]
    assert "its scores stay as they are, because no map is certain to improve them" in found.notes[0].message


def test_grades_are_read_on_their_scale(tmp_path: Path) -> None:
    entry = describe(Scripted("fast", {}), RUBRIC, scale=(1.0, 5.0))
    judge = calibrated(tmp_path, entry, said={"a": 1.0, "b": 3.0, "c": 5.0})
    assert scores_of(asked(judge, RUBRIC, "abc")) == [1.0, pytest.approx(3.4), pytest.approx(4.2)]


def test_labels_of_claims_calibrate_claims(tmp_path: Path) -> None:
    claims = (claim(0.6, "supported"), claim(0.4, "supported"), claim(0.2, "contradicted"), claim(0.4))
    judge = calibrated(
        tmp_path, describe(Scripted("fast", {}), FAITHFULNESS, of="claims"), said={"a": Finding(0.4, claims)}
    )
    found = finding_of(asked(judge, ids="a"))
    assert [one.score for one in found.claims] == pytest.approx([0.8, 0.4, 0.0, 0.4])
    assert [one.verdict for one in found.claims] == ["supported", "not_enough_info", "contradicted", None]
    assert found.score == pytest.approx(0.4)


def test_other_criteria_keep_their_scores_with_a_warning(tmp_path: Path) -> None:
    found = asked(calibrated(tmp_path), PRECISION, "abc")
    assert scores_of(found) == [0.1, 0.5, 0.7]
    (note,) = found.notes
    assert (note.code, note.level) == ("not_calibrated", "warning")
    assert note.message == "the judge 'fast' is not calibrated for 'context_precision', only for faithfulness"


def test_the_calibration_of_another_judge_is_refused(tmp_path: Path) -> None:
    judge = calibrated(tmp_path, threshold=0.3)
    told = "calibration.json does not fit the judge 'fast': it was made with threshold the default, this spec has 0.3;"
    with pytest.raises(DataError, match=told):
        asked(judge)
    (fault,) = judge.check_files()
    assert fault.key == ("calibration",)
    assert fault.message.startswith(told)
    assert fault.message.endswith(
        "calibrate again with: rageval-spec calibrate --labels labels.csv -o calibration.json"
    )


def test_a_calibration_finds_its_judge_under_another_name(tmp_path: Path) -> None:
    entries = (describe(Scripted("slow", {}), FAITHFULNESS), describe(Scripted("x", {}), FAITHFULNESS, digest="other"))
    assert scores_of(asked(calibrated(tmp_path, *entries), ids="a")) == [0.0]


def test_a_file_without_this_kind_of_judge_says_what_it_holds(tmp_path: Path) -> None:
    entry = describe(Scripted("slow", {}), FAITHFULNESS, identity={"use": "nli"}, digest="x")
    (fault,) = calibrated(tmp_path, entry).check_files()
    assert fault.message == "calibration.json holds no calibration of the judge 'fast'; it holds slow"


@pytest.mark.parametrize(
    ("score", "lacks", "message"),
    [
        (
            "decision",
            "threshold",
            "score: decision needs a threshold, which calibration.json (60 labels) does not have",
        ),
        ("guarantee", "guarantee", "score: guarantee needs a guarantee, which calibration.json does not have"),
    ],
)
def test_what_the_file_lacks_is_said(tmp_path: Path, score: str, lacks: str, message: str) -> None:
    entry = describe(Scripted("fast", {}), FAITHFULNESS, **{lacks: None})
    judge = calibrated(tmp_path, entry, use={"path": "calibration.json", "score": score})
    (fault,) = judge.check_files()
    assert fault.key == ("calibration", "path")
    assert fault.message.startswith(message)
    with pytest.raises(DataError, match=r"judges\.fast: score: "):
        asked(judge)


def test_a_missing_file_is_left_to_the_check_of_all_files(tmp_path: Path) -> None:
    judge = calibrated(tmp_path, use="other.json")
    assert [*judge.check_files()] == []
    (file,) = judge.inputs()
    assert (file.path, file.key) == (tmp_path / "other.json", ("calibration",))


def test_labels_of_the_last_step_are_called_so(tmp_path: Path) -> None:
    entry = describe(Scripted("fast", {}), FAITHFULNESS, labelled=replace(LABELLED, by="last step", items=1))
    (note,) = asked(calibrated(tmp_path, entry), ids="a").notes
    assert note.message == "the judge 'fast' is calibrated with 1 label of its last step"


def test_everything_else_is_the_judges_own(tmp_path: Path) -> None:
    judge = calibrated(tmp_path)
    plain = Scripted("fast", SAID)
    assert (judge.abilities, judge.check(), judge.prompt_digests()) == (plain.abilities, None, {})
    assert judge.claims([("", "red")]) == [("fast: red",)]
    judge.expect([FAITHFULNESS])
    assert judge.plain.expected == ["faithfulness"]


class Copied(Scripted):
    """A scripted judge that is built like any other plugin."""

    def __init__(self, node: Any, context: Any) -> None:
        super().__init__(context.name, SAID, node=node)
        self.context = context


def test_copies_are_calibrated_too(tmp_path: Path) -> None:
    write(tmp_path / "calibration.json", describe(Scripted("fast", {}), FAITHFULNESS))
    node = ScriptedNode(use="scripted", calibration="calibration.json")
    judge = apply_calibration(Copied(node, Context("fast", tmp_path)))
    for copied in (judge.copy_with(judge.context), repeat_judge(judge, 1)):
        assert scores_of(asked(copied, ids="ac")) == [0.0, 0.8]


def test_the_content_names_the_use_but_not_the_path(tmp_path: Path) -> None:
    plain, other = Scripted("fast", {}), Scripted("fast", {}, node=ScriptedNode(use="scripted", calibration="b.json"))
    assert "calibration" not in str(plain.content())
    assert calibrated(tmp_path).content() == other.content() == {**plain.content(), "calibration": "probability"}


def test_results_describe_the_calibration(tmp_path: Path) -> None:
    judge = calibrated(tmp_path)
    digest = judge.context.fingerprint(judge.inputs()[0])
    assert judge.describe() == UsedCalibration(digest, "probability", {"faithfulness": 60})
    assert digest_calibration(judge) == f"probability:{digest}"


def test_everything_that_a_judge_can_be_asked_is_passed_on() -> None:
    asked = {name for kind in (Judge, Plugin) for name in vars(kind) if not name.startswith("_")}
    own = {"node_type", "version", "known_as", "later_keys", "since", "declared", "list_known_models", "digest"}
    assert asked - own - vars(CalibratedJudge).keys() == set()


def write_one(folder: Path, **changes: Any) -> Path:
    return write(folder / "calibration.json", describe(Scripted("fast", {}), FAITHFULNESS, **changes))


def test_the_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = write_one(tmp_path)
    found = read_calibration(path, "calibration.json")
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.content.judges[0].map == LINE


def test_maps_of_both_kinds_are_applied() -> None:
    assert [*map(LINE.apply, [0.0, 0.4, 0.5, 1.0])] == pytest.approx([0.0, 0.4, 0.6, 0.8])
    assert ScoreMap("platt", slope=2.0, intercept=-1.0).apply(0.5) == 0.5


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "platt", "slope": -1.0, "intercept": 0.0},
        {"kind": "isotonic", "values": [0.5, 0.2], "results": [0.1, 0.2]},
        {"kind": "isotonic", "values": [0.5]},
    ],
)
def test_a_map_that_is_none_is_refused(tmp_path: Path, broken: dict[str, Any]) -> None:
    path = write_one(tmp_path, map=LINE)
    content = json.loads(path.read_text())
    content["judges"][0]["map"] = broken
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"c\.json is not a calibration: judges\.0\.map: a.* '.*' map needs"):
        read_calibration(path, "c.json")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^c\.json cannot be read: No such file or directory$"):
        read_calibration(tmp_path / "c.json", "c.json")
    with pytest.raises(DataError, match=r"^c\.json cannot be read: Is a directory$"):
        read_calibration(tmp_path, "c.json")
    large = tmp_path / "large.json"
    large.write_text(json.dumps({"x": "x" * MOST_BYTES}))
    with pytest.raises(DataError, match=r"large\.json is larger than 16,777,216 bytes; is it a calibration\?"):
        read_calibration(large, "large.json")


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a calibration"):
        read_calibration(tmp_path / "pipe", "pipe")
