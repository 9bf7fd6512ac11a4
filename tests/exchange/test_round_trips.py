"""What is exported and imported again is the same, as far as both sides know it; our own values stay out."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.tables import SampleTable
from rageval_spec.data.traces import Trace
from rageval_spec.exchange.braintrust.source import make_trace as read_rows
from rageval_spec.exchange.braintrust.target import BraintrustTarget, BraintrustTargetNode
from rageval_spec.exchange.deepeval import DeepEvalSource, DeepEvalTarget
from rageval_spec.exchange.huggingface import HuggingFaceNode, HuggingFaceSource, HuggingFaceTarget
from rageval_spec.exchange.langfuse.source import make_trace as read_observations
from rageval_spec.exchange.langfuse.source import normalise
from rageval_spec.exchange.langfuse.target import LangfuseTarget, LangfuseTargetNode
from rageval_spec.exchange.langsmith.source import make_trace as read_runs
from rageval_spec.exchange.langsmith.target import LangSmithTarget, LangSmithTargetNode
from rageval_spec.exchange.ragas import RagasSource, RagasTarget
from rageval_spec.exchange.shared.contracts import FileTarget, TargetNode
from rageval_spec.exchange.shared.row_files import RowFileSource, RowsNode
from rageval_spec.exchange.wandb import WandbSource, WandbSourceNode, WandbTarget
from rageval_spec.plugin import Context
from rageval_spec.recorded.questions_and_answers import RecordedPaths
from tests.answered_evaluation import value
from tests.exchange.evaluations import make_traced

EXAMPLE = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip())
ANSWERS = st.fixed_dictionaries({
    "question": WORDS,
    "answer": WORDS,
    "contexts": st.lists(WORDS, min_size=1, max_size=3, unique=True),
    "faithfulness": st.floats(0, 1),
    "input_tokens": st.integers(0, 2**40),
})  # fmt: skip


def evaluate(given: dict[str, Any]) -> Evaluation:
    values = [value(EXAMPLE, "faithfulness", given["faithfulness"])]
    ids = [f"d{number}" for number in range(len(given["contexts"]))]
    evaluation = make_traced({EXAMPLE: None}, values)
    import polars as pl

    columns = [
        pl.lit(given["question"]).alias("question"),
        pl.lit(given["answer"]).alias("answer"),
        pl.lit(pl.Series([given["contexts"]])).alias("contexts"),
        pl.lit(pl.Series([ids])).alias("context_ids"),
        pl.lit(given["input_tokens"]).alias("input_tokens"),
    ]
    samples = evaluation.samples.with_columns(columns)
    from dataclasses import replace

    return replace(evaluation, sample_table=SampleTable(lambda: [samples]))


def check(trace: Trace | None, given: dict[str, Any]) -> None:
    assert trace is not None
    assert (trace.question, trace.answer) == (given["question"], given["answer"])
    assert [one.text for one in trace.documents or ()] == given["contexts"]


@given(ANSWERS)
def test_rows_of_braintrust(given: dict[str, Any]) -> None:
    target = BraintrustTarget(BraintrustTargetNode(project="p"), Context("braintrust"))
    (parcel,) = target.list_parcels(evaluate(given))
    trace = read_rows([json.loads(json.dumps(parcel.body["row"]))], RecordedPaths(), {}, "p")
    check(trace, given)
    assert trace is not None
    assert trace.feedback == ()
    assert trace.input_tokens == given["input_tokens"]


@given(ANSWERS)
def test_runs_of_langsmith(given: dict[str, Any]) -> None:
    target = LangSmithTarget(LangSmithTargetNode(dataset="golden"), Context("langsmith"))
    answer, feedback = (json.loads(json.dumps(one.body)) for one in target.list_parcels(evaluate(given)))
    trace = read_runs([answer, feedback], RecordedPaths(), None)
    check(trace, given)
    assert trace is not None
    assert trace.feedback == ()


@given(ANSWERS)
def test_answers_of_langfuse(given: dict[str, Any]) -> None:
    target = LangfuseTarget(LangfuseTargetNode(dataset="golden"), Context("langfuse"))
    answer, score = (json.loads(json.dumps(one.body)) for one in target.list_parcels(evaluate(given)))
    own = {"id": answer["traceId"], "input": json.dumps(answer["input"]), "output": json.dumps(answer["output"])}
    trace = read_observations([normalise(own, "1"), normalise(score, "2")], RecordedPaths())
    check(trace, given)
    assert trace is not None
    assert trace.feedback == ()


@given(ANSWERS)
def test_tables_of_wandb(given: dict[str, Any]) -> None:
    ((_, content),) = WandbTarget(TargetNode(), Context("wandb")).render_files(evaluate(given), "x")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.table.json"
        path.write_bytes(content)
        (trace,) = WandbSource(WandbSourceNode(path=str(path)), Context("wandb")).read()
    check(trace, given)
    assert trace.metadata["faithfulness"] == given["faithfulness"]
    assert trace.input_tokens == given["input_tokens"]


@given(ANSWERS)
@pytest.mark.parametrize(
    ("target", "source"),
    [(RagasTarget, RagasSource), (DeepEvalTarget, DeepEvalSource)],
)
def test_files_of_other_tools(
    target: type[FileTarget[Any]], source: type[RowFileSource], given: dict[str, Any]
) -> None:
    files = dict(target(TargetNode(), Context("files")).render_files(evaluate(given), target.filename))
    with TemporaryDirectory() as folder:
        path = Path(folder) / target.filename
        path.write_bytes(files[""])
        (trace,) = source(RowsNode(path=str(path)), Context("files")).read()
    check(trace, given)
    assert trace.id == EXAMPLE
    if target is DeepEvalTarget:
        assert trace.input_tokens == given["input_tokens"]
    else:
        assert [one.doc_id for one in trace.documents or ()] == [
            f"d{number}" for number in range(len(given["contexts"]))
        ]


@given(ANSWERS)
def test_folders_of_hugging_face(given: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        for name, content in HuggingFaceTarget(TargetNode(), Context("hf")).render_files(evaluate(given), "x"):
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        (trace,) = HuggingFaceSource(HuggingFaceNode(path=folder), Context("hf")).read()
    check(trace, given)
    assert (trace.id, trace.input_tokens) == (EXAMPLE, given["input_tokens"])
    assert trace.metadata["faithfulness"] == given["faithfulness"]
