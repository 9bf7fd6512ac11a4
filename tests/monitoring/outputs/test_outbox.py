"""What is put into the outbox, and what becomes of it, in SQLite and in PostgreSQL."""

from collections.abc import Iterator, Sequence

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.drawing.openmetrics import MetricFamily
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.shared.contracts import Parcel, Target, TargetNode
from rageval_spec.exchange.shared.scores import EvaluationScores
from rageval_spec.exchange.shared.spans.protobuf import Gauge
from rageval_spec.monitoring.alerts import FIRST_WAIT
from rageval_spec.monitoring.inspection.redaction import Redaction
from rageval_spec.monitoring.ledger import Judgement, Ledger, SampledTrace
from rageval_spec.monitoring.outputs.outbox import DestinationState, Outbox
from rageval_spec.monitoring.outputs.sending import LEASE, ToolSender
from rageval_spec.plugin import Context
from tests.monitoring.seen_traces import BEGAN, judge_all, seen
from tests.sample_evaluation import make_evaluation


class Recording(Target[TargetNode]):
    """A tool that keeps what it is sent."""

    batch = 3
    takes = ("values", "numbers")

    def __init__(self) -> None:
        super().__init__(TargetNode(), Context("recording"))
        self.sent: list[str] = []
        self.got: dict[str, float | None] = {}
        self.numbers: list[Gauge] = []
        self.error: Exception | None = None
        self.refused: set[str] = set()
        self.calls = 0

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        for score in EvaluationScores(evaluation, None):
            yield Parcel(score.key, {"value": score.value, "status": score.status}, score.key)

    def send(self, parcels: Sequence[Parcel]) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        if self.refused & {parcel.key for parcel in parcels}:
            raise ServiceError("refused", 400)
        self.sent += [parcel.key for parcel in parcels]
        self.got |= {parcel.key: parcel.body["value"] for parcel in parcels}

    def send_numbers(self, numbers: Sequence[Gauge]) -> None:
        self.numbers += numbers


@pytest.fixture
def target() -> Recording:
    return Recording()


@pytest.fixture
def series(ledger: Ledger) -> int:
    """A series with ten judged values that wait to be sent."""
    found = ledger.find_series("faithfulness", "0123456789abcdef", {}, BEGAN)
    ledger.on_judged = Outbox(ledger.connection, "bot", ["memory"], lambda: {found}).queue
    ledger.see([seen(f"t{number}") for number in range(10)], "live", None)
    assert len(judge_all(ledger, found, BEGAN + 100, 0.5)) == 10
    return found


@pytest.fixture
def sender(series: int, target: Recording) -> ToolSender:
    return ToolSender("memory", target, make_evaluation(), Redaction())


def count(ledger: Ledger) -> DestinationState:
    return Outbox(ledger.connection, "bot").count()["memory"]


def deliver(sender: ToolSender, ledger: Ledger, at: float) -> None:
    while sender.deliver(ledger, BEGAN + at):
        pass


def test_values_are_sent_once_under_their_series_and_trace(
    ledger: Ledger, sender: ToolSender, target: Recording
) -> None:
    assert count(ledger) == DestinationState(10)
    for at in (101, 102):
        deliver(sender, ledger, at)
    assert sorted(target.sent) == [f"production/01234567/t{number}/faithfulness" for number in range(10)]
    assert count(ledger) == DestinationState(0, 10)


def test_a_tool_that_is_down_is_left_alone_for_growing_waits_and_told_of(
    ledger: Ledger, sender: ToolSender, target: Recording
) -> None:
    told: list[str | None] = []
    sender.complain, target.error = told.append, ServiceError("down", 503)
    for at in (0.0, 1.0, FIRST_WAIT, FIRST_WAIT + 11, 3 * FIRST_WAIT, 7 * FIRST_WAIT):
        deliver(sender, ledger, 200 + at)
    assert target.calls == 4
    assert told == ["down"] * 4
    found = count(ledger)
    assert (found.waiting, found.failures, found.since, found.failure) == (10, 4, BEGAN + 200, "down")
    assert found.is_stuck
    target.error = None
    deliver(sender, ledger, 1000)
    assert told[-1] is None
    assert count(ledger)[:2] == (0, 10)
    assert not count(ledger).is_stuck


def test_a_fault_of_a_plugin_shows_no_secret(ledger: Ledger, sender: ToolSender, target: Recording) -> None:
    target.error = ConnectionError("https://tools.example/s3cr3t")
    deliver(sender, ledger, 101)
    assert count(ledger).failure == "it broke off with ConnectionError"


def test_only_what_is_refused_is_left_out(ledger: Ledger, sender: ToolSender, target: Recording) -> None:
    target.refused = {"production/01234567/t4/faithfulness"}
    deliver(sender, ledger, 101)
    assert count(ledger) == DestinationState(0, 9, 1, "refused")
    told = Outbox(ledger.connection, "bot").describe(only_troubles=True)
    assert list(told) == ["memory: 9 values sent, 0 waiting, 1 left out, the last because refused"]


def test_a_trace_whose_text_was_removed_has_no_place(ledger: Ledger, sender: ToolSender) -> None:
    assert ledger.forget(trace_id="t1") == 1
    deliver(sender, ledger, 101)
    found = count(ledger)
    assert (found.waiting, found.sent, found.left_out) == (0, 9, 1)
    assert str(found.reason).startswith("the text of the trace is no longer kept")


def test_a_value_that_is_judged_again_corrects_the_tool(
    ledger: Ledger, series: int, sender: ToolSender, target: Recording
) -> None:
    deliver(sender, ledger, 101)
    ledger.see([seen("t1", due=BEGAN + 160, answer="Another answer.")], "live", None)
    assert judge_all(ledger, series, BEGAN + 200, 0.75) == ["t1"]
    deliver(sender, ledger, 201)
    assert target.sent[-1] == "production/01234567/t1/faithfulness"
    assert target.got[target.sent[-1]] == 0.75
    assert len(target.sent) == 11


def test_a_value_that_was_taken_back_is_taken_back_at_the_tool(
    ledger: Ledger, series: int, sender: ToolSender, target: Recording
) -> None:
    deliver(sender, ledger, 101)
    ledger.see([seen("t1", due=BEGAN + 160, answer="Another answer.")], "live", None)
    claimed = ledger.claim(BEGAN + 200, 100, 300)
    failed = [Judgement(series, "t1", "failed", None, 1.0, "the judge said nonsense")]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], failed, BEGAN + 200)
    deliver(sender, ledger, 201)
    assert target.got["production/01234567/t1/faithfulness"] is None


def test_traces_that_never_had_a_value_are_not_sent(ledger: Ledger, series: int) -> None:
    ledger.see([seen("bad")], "live", None)
    claimed = ledger.claim(BEGAN + 100, 100, 300)
    failed = [Judgement(series, "bad", "failed", None, 1.0, "the judge said nonsense")]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], failed, BEGAN + 100)
    assert count(ledger).waiting == 10


def test_a_value_that_is_judged_again_while_it_is_sent_is_sent_again(
    ledger: Ledger, sender: ToolSender, target: Recording
) -> None:
    send = target.send

    def judge_again(parcels: Sequence[Parcel]) -> None:
        target.send = send  # type: ignore[method-assign]
        ledger.connection.execute("UPDATE rageval_outbox SET queued = queued + 1 WHERE trace_id = 't3'")
        send(parcels)

    target.send = judge_again  # type: ignore[method-assign]
    deliver(sender, ledger, 101)
    assert count(ledger).waiting == 1
    deliver(sender, ledger, 102)
    assert target.sent.count("production/01234567/t3/faithfulness") == 2
    assert len(target.got) == 10


def test_one_process_sends_to_a_tool_at_a_time(ledger: Ledger, sender: ToolSender, target: Recording) -> None:
    ledger.owner = "another"
    assert ledger.lead("send memory", BEGAN + 100, LEASE)
    ledger.owner = "a"
    deliver(sender, ledger, 101)
    assert target.sent == []
    deliver(sender, ledger, 101 + LEASE)
    assert len(target.sent) == 10


def test_what_users_said_does_not_go_back(ledger: Ledger) -> None:
    feedback = ledger.find_series("feedback.thumbs", "", {}, BEGAN)
    ledger.on_judged = Outbox(ledger.connection, "bot", ["memory"], set).queue
    ledger.see([seen("t1")], "live", None)
    judge_all(ledger, feedback, BEGAN + 100)
    assert Outbox(ledger.connection, "bot", ["memory"]).count() == {"memory": DestinationState()}


def test_what_waits_for_a_tool_that_was_removed_from_the_spec_is_still_counted(ledger: Ledger, series: int) -> None:
    later = Outbox(ledger.connection, "bot", ["another"])
    assert {name: one.waiting for name, one in later.count().items()} == {"another": 0, "memory": 10}


def test_numbers_are_sent_once_each_time_that_there_are_new_ones(
    ledger: Ledger, sender: ToolSender, target: Recording
) -> None:
    numbers: list[MetricFamily] = []
    sender.numbers = lambda: numbers
    deliver(sender, ledger, 101)
    assert target.numbers == []
    numbers = [
        MetricFamily("rageval_lag_seconds", "The lag.", [({"monitor": "bot"}, 2), ({"monitor": "none"}, None)]),
        MetricFamily("rageval_traces_seen", "All.", [({}, 10)], "counter"),
    ]
    for at in (102, 103):
        deliver(sender, ledger, at)
    assert [(one.name, one.value, one.is_total) for one in target.numbers] == [
        ("rageval.lag_seconds", 2.0, False),
        ("rageval.traces_seen", 10.0, True),
    ]


def test_texts_that_the_spec_leaves_out_do_not_leave(ledger: Ledger, series: int, target: Recording) -> None:
    evaluations: list[Evaluation] = []

    def keep(evaluation: Evaluation) -> Iterator[Parcel]:
        evaluations.append(evaluation)
        return iter(())

    target.list_parcels = keep  # type: ignore[method-assign]
    ToolSender("memory", target, make_evaluation(), Redaction(["answer"])).deliver(ledger, BEGAN + 101)
    (one,) = evaluations
    assert one.samples["answer"].null_count() == one.samples["contexts"].null_count() == 10
    assert set(one.samples["question"]) == {""}
    assert one.values["reason"].null_count() == 10
