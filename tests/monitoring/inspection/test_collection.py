"""From production to a test set: what is collected and why, and a file that only grows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rageval_spec.commands.monitor.command import monitor
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.monitoring.assembly import make_page, make_watch, open_collector, open_ledger
from rageval_spec.monitoring.inspection.collection import Collected, collect_into, list_bounds
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec.blocks.spec_node import Spec
from tests.command_line import invoke
from tests.monitoring.inspection.watched import BAD, GOOD, NOON, SOURCE, SPEC, judge, load_spec, write_traces

LATER = NOON + 7200
DAY = 86_400
THUMBS_DOWN = {"feedback": [{"name": "thumbs", "value": 0.0, "source": "user"}]}


def collect(spec: Spec, path: Path, limit: int = 50, days: int = 7) -> Collected:
    with open_collector(spec) as collector:
        return collect_into(path, collector, LATER - days * DAY, limit, LATER)[1]


def read(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def watch(folder: Path, *rows: dict[str, Any], more: str = "", spec: str = SPEC) -> Spec:
    write_traces(folder, *rows)
    loaded = load_spec(folder, more, spec)
    judge(loaded)
    return loaded


def test_failing_disagreed_disliked_and_labelled_answers_are_collected(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query_id,metric,label,annotator\nlabelled,faithfulness,1,ann\n")
    said = [{"name": "quality", "value": 4.0, "source": "annotator", "author": "bob"}]
    spec = watch(
        tmp_path,
        {"id": "good"},
        {"id": "bad", "answer": BAD},
        {"id": "unloved", **THUMBS_DOWN},
        {"id": "silent", "feedback": [{"name": "said", "label": "thumbs_down", "source": "user"}]},
        {"id": "labelled"},
        {"id": "annotated", "feedback": said},
        more="labels: {people: {use: csv, path: labels.csv}}\n",
    )
    made = collect(spec, tmp_path / "golden.jsonl")
    rows = read(tmp_path / "golden.jsonl")
    assert {name: row["why"] for name, row in rows.items()} == {
        "bad": "failing", "unloved": "disagreed + disliked", "silent": "disliked", "labelled": "labelled",
        "annotated": "labelled",
    }  # fmt: skip
    assert rows["bad"]["why_in_detail"] == ["faithfulness is 0.037, below 0.800"]
    assert rows["unloved"]["why_in_detail"][0] == "faithfulness is 1.000 and feedback.thumbs is 0.000"
    assert (rows["labelled"]["why_in_detail"], rows["annotated"]["why_in_detail"]) == (
        ["judged by ann"],
        ["judged by bob"],
    )
    assert made.found == {"failing": 1, "disagreed": 1, "disliked": 2, "labelled": 2}
    assert rows["bad"]["question"] == "Can I return shoes, bad?" and rows["bad"]["answer"] == BAD
    assert rows["bad"]["contexts"] == [{"text": SOURCE}] and rows["bad"]["trace"] == {"tool": "file", "trace_id": "bad"}


def test_two_judges_of_one_kind_can_disagree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.monitoring.inspection.collection.APART", 0.2)
    two = SPEC.replace(
        "metrics: [{use: faithfulness, judge: overlap}]",
        "judges: {strict: {use: overlap, combine: worst}}\n"
        "metrics: [{use: faithfulness, judge: overlap}, {use: faithfulness, judge: strict, as: strict}]",
    ).replace("warning: 0.8, critical: 0.6", "warning: 0.001")
    mixed = " ".join([GOOD] * 3 + [BAD])
    spec = watch(tmp_path, {"id": "mixed", "answer": mixed}, {"id": "good"}, spec=two)
    collect(spec, tmp_path / "golden.jsonl")
    (row,) = read(tmp_path / "golden.jsonl").values()
    assert (row["id"], row["why"]) == ("mixed", "disagreed")
    assert row["why_in_detail"] == ["faithfulness is 0.759 and strict is 0.519"]


def test_bounds_are_those_of_gates_and_alerts_and_the_stricter_one_counts(tmp_path: Path) -> None:
    spec = load_spec(
        tmp_path, "gates: [{metric: faithfulness, min: 0.9}, {metric: latency, max: 5}]\n",
        SPEC.replace("judge: overlap}]", "judge: overlap}, latency]"),
    )  # fmt: skip
    assert list_bounds(spec, "faithfulness", None) == {"below": 0.9}
    assert list_bounds(spec, "latency", None) == {"above": 5}


def test_the_file_grows_by_versions_and_nothing_in_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text('{"id": "own", "question":  "Who?", "reference": "Ada"}')
    spec = watch(tmp_path, *({"id": f"bad{n}", "answer": BAD} for n in range(3)))
    collect(spec, path, limit=2)
    first = path.read_text()
    assert first.startswith('{"id": "own", "question":  "Who?", "reference": "Ada"}\n')
    made = collect(spec, path, limit=2)
    assert path.read_text().startswith(first) and len(made.rows) == 1
    assert [row.get("dataset_version") for row in read(path).values()] == [None, 1, 1, 2]
    whole = path.read_bytes()
    assert collect(spec, path).rows == [] and path.read_bytes() == whole


def test_a_question_is_asked_once_however_often_it_came(tmp_path: Path) -> None:
    asked = {"question": "Can I return shoes?", "answer": BAD}
    again = {**asked, "question": "  can i RETURN shoes? "}
    other = {
        **asked,
        "messages": [{"role": "user", "content": "Boots?"}, {"role": "user", "content": asked["question"]}],
    }
    spec = watch(tmp_path, {"id": "a", **asked}, {"id": "b", **again}, {"id": "c", **other})
    made = collect(spec, tmp_path / "golden.jsonl")
    assert sorted(read(tmp_path / "golden.jsonl")) == ["a", "c"] and made.repeated == 1


def test_reasons_take_turns(tmp_path: Path) -> None:
    spec = watch(tmp_path, *({"id": f"bad{n}", "answer": BAD} for n in range(9)), {"id": "unloved", **THUMBS_DOWN})
    collect(spec, tmp_path / "golden.jsonl", limit=2)
    assert [row["why"] for row in read(tmp_path / "golden.jsonl").values()] == ["failing", "disagreed + disliked"]


def test_old_traces_and_those_without_texts_are_left_out(tmp_path: Path) -> None:
    spec = watch(tmp_path, {"id": "old", "answer": BAD, "at": NOON - 9 * DAY}, {"id": "new", "answer": BAD})
    with open_ledger(spec) as ledger:
        ledger.forget(trace_id="new")
    made = collect(spec, tmp_path / "golden.jsonl")
    assert (made.rows, made.removed) == ([], 1) and not (tmp_path / "golden.jsonl").exists()


@pytest.mark.parametrize(("columns", "kept"), [
    (("contexts",), {"id", "question", "answer", "context_ids", "started", "metadata", "trace"}),
    (("answer", "columns"), {"id", "question", "contexts", "trace"}),
])  # fmt: skip
def test_redacted_columns_are_left_out(tmp_path: Path, columns: tuple[str, ...], kept: set[str]) -> None:
    spec = watch(tmp_path, {"id": "bad", "answer": BAD, "user": "u1", "contexts": [{"id": "d1", "text": SOURCE}],
                            "metadata": {"user_id": "u1", "route": "a"}})  # fmt: skip
    collect(replace(spec, redact=columns), tmp_path / "golden.jsonl")  # type: ignore[arg-type]
    (row,) = read(tmp_path / "golden.jsonl").values()
    assert set(row) - {"dataset_version", "why", "why_in_detail"} == kept
    assert "u1" not in (tmp_path / "golden.jsonl").read_text()


def test_a_test_set_without_questions_is_refused(tmp_path: Path) -> None:
    spec = watch(tmp_path, {"id": "bad", "answer": BAD})
    with pytest.raises(UsageError, match="remove 'question' from 'redact:'"):
        collect(replace(spec, redact=("question",)), tmp_path / "golden.jsonl")


def test_a_kill_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "golden.jsonl"
    spec = watch(tmp_path, *({"id": f"bad{n}", "answer": BAD} for n in range(3)))
    collect(spec, path, limit=1)
    whole = path.read_bytes()

    def die(place: Path, content: bytes) -> None:
        place.write_bytes(content[: len(content) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("rageval_spec.store.disk.write_flushed", die)
        collect(spec, path)
    assert path.read_bytes() == whole
    assert len(collect(spec, path).rows) == 2


def test_a_file_that_holds_something_else_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "golden.jsonl"
    path.write_text('{"id": "1", "text": "no question"}\n')
    spec = watch(tmp_path, {"id": "bad", "answer": BAD})
    with pytest.raises(RagevalError, match="row 1 has no 'question'"):
        collect(spec, path)
    assert path.read_text() == '{"id": "1", "text": "no question"}\n'


def test_two_do_not_collect_at_once(tmp_path: Path) -> None:
    spec = watch(tmp_path, {"id": "bad", "answer": BAD})
    with open_ledger(spec) as other:
        other.lead("collect", LATER, 600)
        with pytest.raises(UsageError, match="another process is collecting"):
            collect(spec, tmp_path / "golden.jsonl")
    assert not (tmp_path / "golden.jsonl").exists()


def test_new_kinds_of_question_are_collected(tmp_path: Path) -> None:
    import numpy as np

    from rageval_spec.plugin import EmbeddingModel

    class Directions(EmbeddingModel[Any]):
        """Questions on shoes are all at one place, and all others elsewhere."""

        similarity = "cosine"

        def __init__(self) -> None:
            pass

        def embed(self, texts: Any, role: Any = "document") -> Any:
            rows = [[1.0, 0.0, 0.0] if "shoes" in one else [0.0, 0.0, 1.0] for one in texts]
            return type("Found", (), {"vectors": np.array(rows, dtype=np.float32)})

    earlier = [{"id": f"e{n}", "question": f"Shoes {n}: can I return shoes?", "at": NOON - 9 * DAY} for n in range(120)]
    spec = watch(tmp_path, *earlier, {"id": "usual"}, {"id": "new", "question": "How do I cancel my account?"})
    with open_collector(spec) as collector:
        path = tmp_path / "golden.jsonl"
        _, made = collect_into(path, replace(collector, embedding=Directions()), LATER - 7 * DAY, 50, LATER)
        assert made.remarks == [] and [(row["id"], row["why"]) for row in made.rows] == [("new", "new_kind")]
        _, without = collect_into(path, collector, LATER - 7 * DAY, 50, LATER)
        told = "the spec has no embedding model, so new kinds of question were looked for by their words"
        assert without.remarks == [told]


def test_the_command_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: LATER)
    watch(tmp_path, {"id": "bad", "answer": BAD}, {"id": "good"})
    place = tmp_path / "golden.jsonl"
    given = ["collect", str(tmp_path / "spec.yaml"), "-o", str(place)]
    said = CliRunner().invoke(monitor, given).output
    assert (
        "traces to look at: 1 failing\n" in said
        and f"wrote {place}: version 1, 1 row added; the file now has 1\n" in said
    )
    again = CliRunner().invoke(monitor, given).output
    assert f"nothing new; {place} stays at version 1 with 1 row" in again
    assert "left out: 1 already in the file or asked twice" in again


@pytest.mark.parametrize(("options", "told"), [
    (["-o", "golden.csv"], "name a file that ends in .jsonl"),
    (["-o", "golden.jsonl", "--since", "soon"], "write an age such as 7d or 12h"),
])  # fmt: skip
def test_wrong_options_are_explained(tmp_path: Path, options: list[str], told: str) -> None:
    load_spec(tmp_path)
    done = invoke("monitor", "collect", tmp_path / "spec.yaml", *options)
    assert done.exit_code == 2 and told in done.stderr


def test_what_was_collected_is_evaluated_and_selected_for_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = watch(tmp_path, *({"id": f"bad{n}", "answer": BAD} for n in range(3)))
    collect(spec, tmp_path / "golden.jsonl")
    (tmp_path / "review.yaml").write_text(
        "version: 1\nname: golden\ndatasets: {golden: {use: jsonl, path: golden.jsonl}}\n"
        "systems: {live: {use: file, path: golden.jsonl}}\nmetrics: [{use: faithfulness, judge: overlap}]\n"
        "slices: [why]\nreports: []\n"
    )
    monkeypatch.chdir(tmp_path)
    for command in (["run", "review.yaml", "-q"], ["review", "select", "-o", "form.csv"]):
        done = invoke(*command)
        assert done.exit_code == 0, done.stderr
    form = (tmp_path / "form.csv").read_text()
    assert all(f"bad{n}" in form for n in range(3)) and BAD in form


def test_page_and_test_set_are_the_same_from_postgresql(tmp_path: Path, server: str) -> None:
    pages, rows = [], []
    for place, history in (("a", ""), ("b", f"history: {{use: postgres, url: '{server}'}}\n")):
        (folder := tmp_path / place).mkdir()
        answers = [{"id": f"bad{n}", "answer": BAD, "at": NOON - n * 1800} for n in range(3)]
        spec = watch(folder, {"id": "unloved", **THUMBS_DOWN}, *answers, more=history)
        collect(spec, folder / "golden.jsonl")
        rows.append((folder / "golden.jsonl").read_text())
        with open_ledger(spec) as ledger:
            parts = build_parts(spec)
            pages.append(make_page(spec, make_watch(spec, ledger, parts), parts, folder / "monitor.html").draw(LATER))
    assert pages[0] == pages[1] and pages[0].count(b"<svg") == 2
    assert rows[0] == rows[1] and rows[0].count("\n") == 4


def test_a_percentile_has_no_failing_answers_and_what_redact_leaves_out_is_said(tmp_path: Path) -> None:
    slow = SPEC.replace("judge: overlap}]", "judge: overlap}, latency@p95]").replace(
        "alerts: [", "alerts: [{metric: latency@p95, warning: 1}, "
    )
    assert slow.count("latency@p95") == 2
    spec = watch(tmp_path, {"id": "slow", "seconds": 9.0}, {"id": "bad", "answer": BAD}, spec=slow,
                 more="redact: [contexts]\n")  # fmt: skip
    made = collect(spec, tmp_path / "golden.jsonl")
    assert [*read(tmp_path / "golden.jsonl")] == ["bad"]
    told = " ".join(made.remarks)
    assert "the rows have no contexts, because 'redact:' leaves that out" in told
    assert "latency@p95: no answer was collected as failing: its bounds are of a percentile" in told
