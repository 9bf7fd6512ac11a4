from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.samples import Sample
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import AnswerMetric, Context, Measurement

COUNT = iter(range(10**6))
SAMPLES = [
    Sample("q1", "Why?", answer="because [1]", contexts=("a", "b"), references=("r",), columns={"level": "hard"}),
    Sample("q2", "Who?", answer="me", contexts=(), references=()),
]


@pytest.fixture(autouse=True)
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("checks_"):
            del sys.modules[name]


def build(folder: Path, source: str, **keys: Any) -> AnswerMetric[Any]:
    """The metric of the function `cites` of a module of a name that no other test has."""
    module = f"checks_{next(COUNT)}"
    (folder / f"{module}.py").write_text(dedent(source))
    cls = registry.load("metrics", "python")
    node = cls.node_type.model_validate({"use": "python", "function": f"{module}:cites", **keys})
    metric: AnswerMetric[Any] = cls(node, Context("cites", folder))
    return metric


def measure(folder: Path, source: str, samples: Sequence[Sample] = SAMPLES, **keys: Any) -> list[Measurement]:
    metric = build(folder, source, **keys)
    assert metric.check() is None
    metric.prepare()
    return list(metric.compute(samples).measurements)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def cites(answer): return '[' in answer", [1.0, 0.0]),
        ("def cites(sample): return len(sample.contexts)", [2.0, 0.0]),
        ("def cites(s): return len(s.question)", [4.0, 4.0]),
        ("def cites(row): return len(row['contexts']) + len(row['answer'])", [13.0, 2.0]),
        ("def cites(contexts, columns, reference=None): return columns.get('level') == 'hard'", [1.0, 0.0]),
        ("def cites(*, query_id): return int(query_id[1:]) / 4", [0.25, 0.5]),
        ("async def cites(answer): return 0.5", [0.5, 0.5]),
        ("import numpy as np\ndef cites(answer): return np.float32(0.5)", [0.5, 0.5]),
        ("class C:\n    def __call__(self, answer): return 1\ncites = C()", [1.0, 1.0]),
    ],
)
def test_a_function_gets_what_it_names(tmp_path: Path, source: str, expected: list[float]) -> None:
    assert [one.value for one in measure(tmp_path, source)] == expected


def test_reasons_and_missing_values(tmp_path: Path) -> None:
    found = measure(tmp_path, "def cites(answer): return {'value': 0.5, 'reason': 'half\\x1b'}")
    assert (found[0].value, found[0].reason) == (0.5, "half\\x1b")
    found = measure(tmp_path, "def cites(answer): return None")
    assert (found[0].status, str(found[0].reason).partition(":")[2]) == ("unscorable", "cites returned None")
    found = measure(tmp_path, "def cites(answer): return {'score': None, 'reason': 'no claims'}")
    assert (found[0].status, found[0].reason) == ("unscorable", "no claims")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no luck')", "cites raised ValueError: no luck"),
        ("import sys; sys.exit(3)", "cites called sys.exit(3); it must return or raise an exception"),
        ("return 'good'", "cites returned a value of type str, not a number, a bool or a dict"),
        ("return {'points': 3}", "cites returned a dict without 'value'; it has 'points'"),
    ],
)
def test_what_fails_is_an_error_of_that_query(tmp_path: Path, body: str, reason: str) -> None:
    source = f"def cites(query_id):\n    if query_id == 'q2': return 1\n    {body}\n"
    first, second = measure(tmp_path, source)
    assert (first.status, first.value) == ("error", None)
    assert str(first.reason).endswith(reason)
    assert second.value == 1.0


def test_a_value_outside_the_range_is_an_error(tmp_path: Path) -> None:
    source = "def cites(query_id):\n    return {'value': 5 if query_id == 'q1' else 5.5, 'reason': 'graded'}\n"
    inside, outside = measure(tmp_path, source, range=[1, 5])
    assert inside == Measurement.scored(5.0, "graded")
    assert outside == Measurement.error("5.5 is outside the range 1 to 5 that the metric gives")
    assert build(tmp_path, source, range=[1, 5]).bounds == (1.0, 5.0)


def test_a_range_that_is_not_given_changes_no_key(tmp_path: Path) -> None:
    assert "range" not in build(tmp_path, "def cites(answer): return 1").content()["node"]


@pytest.mark.parametrize(
    "body",
    [
        "return frame['answer'].str.len_chars()",
        "return frame.select(value=frame['answer'].str.len_chars())",
        "return [len(answer) for answer in frame['answer']]",
        "return [{'value': len(answer), 'reason': 'x'} for answer in frame['answer']]",
        "return frame.to_pandas().assign(value=lambda f: f.answer.str.len())[['value']]",
    ],
)
def test_a_function_of_a_frame(tmp_path: Path, body: str) -> None:
    source = f"def cites(frame):\n    {body}\n"
    assert [one.value for one in measure(tmp_path, source, takes="frame")] == [11.0, 2.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return [1]", "cites returned 1 value for 2 samples"),
        ("return 'ab'", "cites returned a value of type str, not a list, a Series or a frame"),
        ("return 3", "cites returned a value of type int, not a list"),
        ("1 / 0", "cites raised ZeroDivisionError"),
    ],
)
def test_a_function_of_a_frame_that_fails_fails_for_all(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        measure(tmp_path, f"def cites(frame):\n    {body}\n", takes="frame")


FRAME = "takes a frame of all samples ('{}'), but is called for each sample; add 'takes: frame' to the metric"


@pytest.mark.parametrize(
    ("source", "keys", "message"),
    [
        ("def cites(frame): return frame['answer']", {}, FRAME.format("frame")),
        ("import polars as pl\ndef cites(x: pl.DataFrame): return x['answer']", {}, FRAME.format("x")),
        ("def cites(x: 'pd.DataFrame'): return x['answer']", {}, FRAME.format("x")),
        ("def cites(answer): return 1", {"takes": "frame"}, "takes the argument 'answer', a part of one sample, but"),
    ],
)
def test_a_function_of_a_frame_must_say_so(tmp_path: Path, source: str, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        measure(tmp_path, source, **keys)
    assert str(refused.value).startswith(f"metrics.cites.function: {message}")


@pytest.mark.parametrize("body", ["x['answer'].str.len_chars()", "x.get_column('answer')"])
def test_a_sample_that_is_used_as_a_frame_gets_a_hint(tmp_path: Path, body: str) -> None:
    reason = measure(tmp_path, f"def cites(x): return {body}")[0].reason or ""
    assert reason.endswith("; if it is a function of a frame, add 'takes: frame'")


def test_several_samples_at_once_keep_their_order(tmp_path: Path) -> None:
    samples = [Sample(str(number), "?", answer="x") for number in range(50)]
    source = "import threading\nbarrier = threading.Barrier(4)\ndef cites(query_id):\n" + (
        "    if int(query_id) < 4: barrier.wait(60)\n    return int(query_id)\n"
    )
    assert [one.value for one in measure(tmp_path, source, samples, concurrency=4)] == [float(n) for n in range(50)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0\ndef cites(answer): ...", "the import of checks_"),
        ("def cites(answer, wrong): ...", "needs the argument 'wrong'; it is given query_id, question, answer"),
        ("def cites(): ...", "takes no part of a sample; it is given query_id"),
    ],
)
def test_a_function_that_cannot_be_called_fails_before_the_first_call(
    tmp_path: Path, source: str, message: str
) -> None:
    metric = build(tmp_path, source)
    with pytest.raises(UsageError, match=f"^metrics.cites.function: {message}"):
        metric.prepare()


def test_a_missing_function_is_found_without_an_import(tmp_path: Path) -> None:
    fault = build(tmp_path, "raise SystemExit\ndef cite(answer): ...\n").check()
    assert fault is not None
    assert fault.endswith("did you mean 'cite'?")
    with pytest.raises(ValidationError, match="write 'module:function', for example 'checks:cites'"):
        build(tmp_path, "", function="checks.py")


def test_the_name_the_direction_and_the_key(tmp_path: Path) -> None:
    metric = build(tmp_path, "def cites(answer): return 1", higher_is_better=False, needs=["contexts"])
    assert (metric.name, metric.higher_is_better, metric.needs) == ("cites", False, frozenset({"contexts"}))
    before = metric.content()
    path = metric.inputs()[0].path
    path.write_text("def cites(answer): return 2")
    assert metric.content() != before
    assert metric.content()["files"] == [metric.context.fingerprint(metric.inputs()[0])]
