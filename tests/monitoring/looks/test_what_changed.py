"""What moved when scores changed: app, judge, traffic or model, and what could not be checked."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from rageval_spec.data.traces import Document, Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.metrics.faithfulness import Faithfulness
from rageval_spec.monitoring.ledger import Judgement, Ledger, SampledTrace, SeenTrace
from rageval_spec.monitoring.looks.what_changed import ChangeExplainer, Explanation
from rageval_spec.monitoring.looks.windows import Span
from rageval_spec.monitoring.traces.trace_judging import Series
from rageval_spec.pipeline.execution.anchor_judging import JudgeDrift
from rageval_spec.plugin import EmbeddingModel
from rageval_spec.plugin.model import Embeddings
from rageval_spec.statistics.traffic_drift import compare_embeddings, embed_words, find_new_words
from tests.monitoring.seen_traces import BEGAN, open_ledger

BEFORE, NOW = Span(BEGAN, BEGAN + 1000), Span(BEGAN + 1000, BEGAN + 2000)
RANDOM = np.random.default_rng(9)


class Topics:
    """An embedding model that knows topics by their first word."""

    def __init__(self, failure: str | None = None) -> None:
        self.failure = failure

    def prepare(self) -> None:
        if self.failure:
            raise DataError(self.failure)

    def embed(self, texts: Sequence[str], role: str = "document") -> Embeddings:
        axes = {"billing": 0, "login": 1}
        vectors = [np.eye(8)[axes.get(text.split()[0], 5)] + RANDOM.normal(0, 0.05, 8) for text in texts]
        return Embeddings(np.array(vectors, dtype=np.float32), np.zeros(len(texts), dtype=bool))


def add(ledger: Ledger, series: int, span: Span, values: Sequence[float], question: str, **others: Any) -> None:
    name = f"{span.start:.0f}-{question[:7]}"
    traces = [
        SeenTrace(
            Trace(TraceLink("file", f"{name}{at}"), f"{question} {at}", f"{name}{at}", answer="It is so, as written.",
                  documents=(Document("text"),), **others), span.start + at, span.start,
        )
        for at in range(len(values))
    ]  # fmt: skip
    ledger.see(traces, "live", None)
    claimed = ledger.claim(span.end, 1000, 300)
    of = {f"{name}{at}": value for at, value in enumerate(values)}
    made = [Judgement(series, one.trace_id, "judged", of[one.trace_id], 1.0) for one in claimed]
    ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, span.end)


def explain(ledger: Ledger, series: Series, ask: Any = None, *, knows_topics: bool = True) -> Explanation:
    embedding = cast("EmbeddingModel[Any]", Topics()) if knows_topics else None
    return ChangeExplainer(ledger, embedding, ask).explain(series, BEFORE, NOW)


def begin(folder: Path, *, has_judge: bool = False) -> tuple[Ledger, Series]:
    ledger = open_ledger(folder)
    metric = cast("Any", _Judged()) if has_judge else None
    return ledger, Series(ledger.find_series("faithfulness", "", {}, BEGAN), "faithfulness", metric)


class _Judged:
    statistic, higher_is_better, bounds = "mean", True, Faithfulness.info.bounds

    def judges(self) -> tuple[str, ...]:
        return ("a judge",)


def test_new_kinds_of_question_are_named_with_examples(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9] * 300, "billing question")
    add(ledger, series.id, NOW, [0.9] * 60, "billing question")
    add(ledger, series.id, NOW, [0.1] * 40, "refunds question")
    found = explain(ledger, series)
    assert [*found.moved] == ["traffic"]
    assert "refunds question" in found.moved["traffic"]
    assert "of a new kind" in found.moved["traffic"]


def ask_often(ledger: Ledger, series: int, span: Span, asked: Sequence[str], **others: Any) -> None:
    """Have traces of these questions seen and judged, one a second."""
    others = {"answer": "Yes."} | others
    traces = [
        SeenTrace(Trace(TraceLink("file", f"{span.start:.0f}-{at}"), one, f"{span.start:.0f}-{at}", **others),
                  span.start + at / 10, span.start)
        for at, one in enumerate(asked)
    ]  # fmt: skip
    ledger.see(traces, "live", None)
    while claimed := ledger.claim(span.end, 1000, 300):
        made = [Judgement(series, one.trace_id, "judged", 0.5, 1.0) for one in claimed]
        ledger.settle([SampledTrace(one, 1.0) for one in claimed], made, span.end)


def test_the_same_questions_asked_less_often_are_the_same_traffic(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    usual = QUESTIONS[:40]
    ask_often(ledger, series.id, BEFORE, RANDOM.permutation(usual * 100).tolist())
    ask_often(ledger, series.id, NOW, RANDOM.permutation(usual * 8).tolist())
    found = explain(ledger, series, knows_topics=False)
    assert "traffic" not in found.moved
    assert "the questions" in found.same


def test_examples_of_new_questions_are_different_ones(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    ask_often(ledger, series.id, BEFORE, QUESTIONS * 2)
    ask_often(ledger, series.id, NOW, [*QUESTIONS, *["Is it at customs?"] * 20, *["Did customs open it?"] * 20])
    told = explain(ledger, series, knows_topics=False).moved["traffic"]
    assert told.count("Is it at customs?") == told.count("Did customs open it?") == 1


def test_another_model_in_the_traces_moved(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9, 0.8] * 60, "billing question", model="small-1", version="v1")
    add(ledger, series.id, NOW, [0.4, 0.5] * 60, "billing question", model="small-2", version="v1")
    found = explain(ledger, series)
    assert [*found.moved] == ["model"]
    assert "small-2 100% more" in found.moved["model"]


def test_a_part_that_moved_is_not_as_before_and_what_is_unknown_is_not_called_unchanged(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    for span, answer in ((BEFORE, "Yes."), (NOW, "No, that is not what the document says of it.")):
        ask_often(ledger, series.id, span, QUESTIONS, answer=answer, model="small-1")
    told = explain(ledger, series, knows_topics=False)
    assert told.moved == {"model": "answers have another length, although the questions did not change"}
    assert told.tell().startswith(". What moved: model. As before: the questions. Not checked: ")
    assert "the version of the app" in "".join(told.unknown)


def test_a_release_of_the_app_moved(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9, 0.8] * 60, "billing question", model="small-1", version="v1")
    add(ledger, series.id, NOW, [0.4, 0.5] * 60, "billing question", model="small-1", version="v2")
    assert [*explain(ledger, series).moved] == ["app"]


def test_the_judge_that_scores_frozen_answers_otherwise_moved(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path, has_judge=True)
    add(ledger, series.id, BEFORE, [0.9, 0.8] * 60, "billing question", model="small-1", version="v1")
    add(ledger, series.id, NOW, [0.4, 0.5] * 60, "billing question", model="small-1", version="v1")
    flips = cast("Any", type("F", (), {"moved": 30, "rows": 40, "up": 2, "down": 20}))
    drift = JudgeDrift("strict", "faithfulness", 40, 0, 2, "frozen with strict-1", flips, 0.0, cast("Any", None), True)
    found = explain(ledger, series, lambda metric: drift)
    assert [*found.moved] == ["judge"]
    assert "30 of 40 frozen answers have another value, 22 another decision" in found.moved["judge"]


def test_what_could_not_be_checked_is_said(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path, has_judge=True)
    add(ledger, series.id, BEFORE, [0.9] * 60, "billing question")
    add(ledger, series.id, NOW, [0.4] * 60, "billing question")
    told = explain(ledger, series, knows_topics=False).tell()
    assert told.startswith(". What moved: app. As before: the questions and the lengths of answers. Not checked: ")
    for missing in (
        "their words were compared instead), because the spec has no embedding model",
        "which the traces do not name",
        "no 'anchors:'",
    ):
        assert missing in told

    def fail(metric: str) -> JudgeDrift:
        raise DataError("the endpoint answered 503")

    assert "it could not be asked again: the endpoint answered 503" in explain(ledger, series, fail).tell()


def test_without_texts_nothing_is_claimed(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    found = explain(ledger, series)
    assert found.moved == {}
    told = (
        "the texts of only 0 traces from before the change and 0 traces from after it began are kept, and 20 are needed"
    )
    assert told in found.tell()


def test_a_change_from_a_record_says_that_no_earlier_traces_are_there_to_compare(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, NOW, [0.4] * 60, "billing question")
    told = "because the texts of only 0 traces from before the change are kept, and 20 are needed"
    assert f"Not checked: questions, models and answers, {told}" in explain(ledger, series).tell()


def test_an_embedding_model_that_fails_does_not_stop_the_monitor(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9, 0.8] * 60, "billing question", model="small-1")
    add(ledger, series.id, NOW, [0.4, 0.5] * 60, "billing question", model="small-2")
    failing = cast("EmbeddingModel[Any]", Topics("the file model.onnx is missing"))
    found = ChangeExplainer(ledger, failing).explain(series, BEFORE, NOW)
    assert [*found.moved] == ["model"]
    assert "because the embedding model failed: the file model.onnx is missing" in found.tell()


def test_hostile_questions_stay_text(tmp_path: Path) -> None:
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9] * 300, "billing question")
    add(ledger, series.id, NOW, [0.9] * 60, "billing question")
    add(ledger, series.id, NOW, [0.1] * 40, "refunds\x1b[31m @everyone")
    assert "\x1b" not in explain(ledger, series).moved["traffic"]


QUESTIONS = [
    f"{how} {what} {where}?"
    for how in ("How do I cancel", "Can you explain", "Where do I find", "Why was I charged for", "Who approves")
    for what in (
        "my invoice",
        "the annual plan",
        "a second seat",
        "the discount",
        "the receipt",
        "my card",
        "this order",
    )
    for where in ("in the app", "on the website", "for my team", "after the trial", "before renewal", "in March")
]


def test_new_words_are_named_without_an_embedding_model(tmp_path: Path) -> None:
    usual = RANDOM.permutation(QUESTIONS).tolist()
    before, now = usual[:120], [*usual[120:180], *(f"Is the parcel {at} at customs?" for at in range(15))]
    kept = find_new_words(before, now)
    assert sorted(kept) == list(range(60, 75))
    assert find_new_words(before, usual[120:]) == []
    ledger, series = begin(tmp_path)
    add(ledger, series.id, BEFORE, [0.9] * 100, "billing question")
    add(ledger, series.id, NOW, [0.9] * 60, "billing question")
    add(ledger, series.id, NOW, [0.1] * 40, "refunds at customs")
    found = explain(ledger, series, knows_topics=False)
    assert "40 questions of 100 have new words: refunds at customs" in found.moved["traffic"]


def test_real_questions_of_another_field_are_found_and_a_split_raises_no_alarm(shared_data: Path) -> None:
    fields = {}
    for name in ("lfrqa_writing", "lfrqa_fiqa", "pubmedqa_labeled"):
        with gzip.open(shared_data / "rag_qa" / f"{name}.jsonl.gz", "rt") as file:
            rows = [json.loads(line)["question"] for line in file]
        fields[name] = np.random.default_rng(3).permutation(list(dict.fromkeys(rows))).tolist()
    for own in fields.values():
        before, now = own[:400], own[400:800]
        assert find_new_words(before, now) == []
        shift = compare_embeddings(*embed_words(before, now))
        assert shift is not None and shift.p_value > 0.01
    taxes = [one for one in fields["lfrqa_fiqa"] if " tax" in one][:20]
    for name in ("lfrqa_writing", "pubmedqa_labeled"):
        found = find_new_words(fields[name][:400], [*fields[name][400:480], *taxes])
        assert len(found) >= 10 and sum(place < 80 for place in found) <= 1
