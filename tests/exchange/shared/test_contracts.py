"""The nodes of sources check what a user asks for.

What all targets share.

Tools are found by their word, without importing the others.

Traces are read once for all blocks that ask for the same.

Moments as users write them.

The URLs of tools.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.traces import NO_ANSWER, Document, Trace, TraceLink
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.shared import contracts
from rageval_spec.exchange.shared.connections import check_url, choose_url
from rageval_spec.exchange.shared.contracts import (
    Exporter,
    Parcel,
    TargetNode,
    TraceCheck,
    TraceSource,
    WindowNode,
    parse_moment,
    read_traces,
)
from rageval_spec.exchange.shared.spans.spans import format_moment
from rageval_spec.plugin import Context
from rageval_spec.plugin.budget import Budget
from tests.exchange.tool import TRACES, ToySource, ToyTarget


def test_a_window_is_checked_when_the_spec_is_read() -> None:
    assert WindowNode(since="7d", until="2026-03-01").since == "7d"
    with pytest.raises(ValidationError, match="is not a moment"):
        WindowNode(since="last week")
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        WindowNode(limit=0)


def test_a_target_has_nothing_to_say_before_it_sends() -> None:
    target = ToyTarget(TargetNode(), Context("toy"))
    assert (target.destination, target.batch) == ("the toy", 2)
    target.close()


def test_the_kind_of_a_parcel_is_a_value_unless_it_says() -> None:
    assert Parcel("k", {}, "s").kind == "value"


@pytest.mark.parametrize("word", contracts.words())
def test_every_tool_can_be_read_or_written_and_says_what(word: str) -> None:
    tool = contracts.load(word)
    kinds = [kind for kind in (tool.source, tool.target) if kind is not None]
    assert kinds and all(issubclass(kind, (TraceSource, Exporter)) for kind in kinds)
    assert all(kind.summary.endswith(".") and kind.examples for kind in kinds)


@pytest.mark.parametrize("word", contracts.words())
def test_examples_are_commands_of_the_tool(word: str) -> None:
    tool = contracts.load(word)
    for kind, command in ((tool.source, "import"), (tool.target, "export")):
        assert all(example.startswith(f"{command} {word}") for example in (kind.examples if kind else ()))


def test_an_unknown_word_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no tool 'ragass'; did you mean 'ragas'"):
        contracts.load("ragass")


def test_listing_words_imports_no_tool() -> None:
    code = (
        "import sys; from rageval_spec.exchange.shared import contracts as finding; assert 'ragas' in finding.words(); "
        "assert 'rageval_spec.exchange.ragas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_evaluation_or_other_settings_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    context, later = Context("a", tmp_path, budget=Budget()), Context("b", tmp_path, budget=Budget())
    node = ToySource.node_type()
    assert read_traces(ToySource(node, context), "systems.a")[0] == TRACES
    read_traces(ToySource(node, context), "datasets.a")
    assert ToySource.reads == 1
    read_traces(ToySource(ToySource.node_type(limit=3), context), "systems.a")
    read_traces(ToySource(node, later), "systems.a")
    assert ToySource.reads == 3


def test_a_later_evaluation_never_gets_what_an_earlier_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToySource, "reads", 0)
    for _ in range(5):  # each budget is gone before the next is made, so that its place in memory is free again
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")
    assert ToySource.reads == 5


def test_no_traces_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "traces", [])
    with pytest.raises(DataError, match=r"systems.a: there are no traces in what it names"):
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")


def test_what_was_left_out_is_said_if_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToySource, "traces", [])
    monkeypatch.setattr(ToySource, "remarks", lambda self: ["7 traces without a question left out"])
    with pytest.raises(DataError, match="or correct the names; 7 traces without a question left out"):
        read_traces(ToySource(ToySource.node_type(), Context("a", tmp_path, budget=Budget())), "systems.a")


NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7d", "2026-03-01T12:00:00Z"),
        (" 12 H ", "2026-03-08T00:00:00Z"),
        ("30m", "2026-03-08T11:30:00Z"),
        ("2w", "2026-02-22T12:00:00Z"),
        ("2026-03-01", "2026-03-01T00:00:00Z"),
        ("2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00Z"),
        ("2026-03-01T12:00:00.250Z", "2026-03-01T12:00:00.250000Z"),
    ],
)
def test_a_moment_is_in_utc(text: str, moment: str) -> None:
    assert format_moment(parse_moment(text, NOW)) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7x", "-7d", "2026-13-01", "999999w"])
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="is not a moment; write how long ago, such as 30m"):
        parse_moment(text, NOW)


def test_a_slash_at_the_end_is_dropped_and_no_url_stays_none() -> None:
    assert check_url("http://localhost:6006/") == "http://localhost:6006"
    assert check_url(None) is None


def test_what_is_not_a_url_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_URL", "example.org")
    assert choose_url("https://own.example.org", ["TOOL_URL"], "") == "https://own.example.org"
    with pytest.raises(UsageError, match=r"^TOOL_URL: write a URL such as"):
        choose_url(None, ["TOOL_URL"], "")


GOOD = Trace(TraceLink("otel", "t0"), "Why?", answer="So.", documents=(Document("a"), Document("b")))


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("without contexts", {"documents": None}),
        ("without contexts", {"documents": ()}),
        ("without answer", {"answer": ""}),
        ("without answer", {"answer": None, "error": f"{NO_ANSWER}: its output holds no text"}),
        ("question equals answer", {"answer": " Why? "}),
        ("JSON or printed object as question or answer", {"question": '{"a": 1}'}),
        ("JSON or printed object as question or answer", {"answer": "ChatMessage(text='So.')"}),
        ("JSON or printed object as question or answer", {"answer": "<generator object>"}),
        ("contexts twice", {"documents": (Document("a", "1"), Document("a", "2"))}),
        ("merged traces suspected", {"link": TraceLink("otel", "t1")}),
        ("failed", {"answer": None, "error": "TimeoutError"}),
    ],
)
def test_what_looks_wrongly_read_is_counted_and_above_a_tenth_warned_of(line: str, changes: dict[str, Any]) -> None:
    check, bad = TraceCheck(), replace(GOOD, **{"link": TraceLink("otel", "bad"), "query_id": "bad", **changes})
    for number in range(9):
        check.add(replace(GOOD, link=TraceLink("otel", f"t{number}")))
    check.add(bad)
    assert check.counts == {**dict.fromkeys(TraceCheck.LINES, 0), line: 1}
    assert not any(said.startswith("warning") for said in check.render())
    check.add(replace(bad, link=TraceLink("otel", "t2" if line.startswith("merged") else "worse")))
    (warning,) = (said for said in check.render() if said.startswith("warning"))
    assert warning.startswith(f"warning: {line}: 2 of 11, such as bad: question ")
    assert check.remarks() == ([f"of 11 rows that were read, {line}: 2"] if line in TraceCheck.READING else [])


def test_questions_of_a_dataset_are_not_blamed_for_having_no_answers() -> None:
    check = TraceCheck()
    check.add(Trace(TraceLink("phoenix", "e1"), "Why?", query_id="e1"))
    assert not any("without" in said or "warning" in said for said in check.render())


REQUIRED: dict[str, dict[str, Any]] = {
    "braintrust": {"project": "support"},
    "mlflow": {"experiment": "support"},
    "otel": {"path": "spans"},
    "trulens": {"path": "t.sqlite", "database": "t.sqlite"},
    "weave": {"project": "my-team/support"},
}
READ = ("braintrust", "langfuse", "langsmith", "mlflow", "otel", "phoenix", "trulens")


@pytest.mark.parametrize("section", ["datasets", "systems"])
def test_a_tool_that_can_be_read_gives_questions_and_answers(section: registry.Section) -> None:
    for word in READ:
        assert word in registry.builtin_words(section)
        plugin = registry.load(section, word)
        assert plugin.node_type.model_fields.keys() >= plugin.source_type.node_type.model_fields.keys()
        assert plugin.__doc__ and plugin.node_type.__doc__


def test_a_tool_that_can_be_written_is_a_report() -> None:
    for word in (*READ, "weave"):
        plugin = registry.load("reports", word)
        assert plugin.target_type is contracts.load(word).target
    assert "ragas" not in registry.words("reports")  # a file, which `export` writes


def test_a_tool_without_a_source_is_neither_a_dataset_nor_a_system() -> None:
    assert "weave" not in registry.words("datasets") and "weave" not in registry.words("systems")


@pytest.mark.parametrize("word", [word for word in READ if word != "otel"])
def test_a_dataset_has_no_answers(word: str) -> None:
    node = registry.load("systems", word).node_type
    required = {key: value for key, value in REQUIRED.get(word, {}).items() if key in node.model_fields}
    with pytest.raises(ValidationError, match="a dataset has no answers; write it under 'datasets:'") as caught:
        node(use=word, dataset="golden", **required)
    assert [error["loc"] for error in caught.value.errors()] == [("dataset",)]


def test_an_evaluation_reads_spans_from_files_only(tmp_path: Path) -> None:
    """Only a monitor receives them; it opens the address itself."""
    node_type = registry.load("systems", "otel").node_type
    plugin = registry.load("systems", "otel")(node_type(use="otel", listen="4318"), Context("live", tmp_path))
    assert plugin.inputs() == ()
    with pytest.raises(UsageError, match="live: only 'monitor' receives spans; name a 'path' here"):
        contracts.read_traces(contracts.open_part(plugin.source_type, plugin), "systems.live")


def test_other_names_of_a_tool_are_known() -> None:
    assert registry.load("systems", "phoenix").known_as == registry.load("reports", "phoenix").known_as
    assert "openinference" in registry.load("datasets", "otel").known_as
    assert "collector" in registry.load("reports", "otel").known_as
