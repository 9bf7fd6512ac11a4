"""Run files by path: the fast reader against Python's own splitting, floats and sorting, on hostile lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rageval_spec import evaluate
from rageval_spec.errors import DataError

QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}, "q10": {"d": 1}, "q3": {"a": 1}}

NUMBER = r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?inf(inity)?"
NUMBERS = st.one_of(
    st.decimals(-1000, 1000, places=6).map(str),
    st.integers(-(10**18), 10**18).map(str),
    st.floats(allow_nan=False).map(repr),
    st.from_regex(r"[-+]?[0-9]{1,20}\.?[0-9]{0,40}", fullmatch=True),
    st.sampled_from(
        ["-0", "0.0", "1.", ".5", "-.5", "1e3", "1E-3", "inf", "-Infinity", "16777217", "9007199254740993"]
    ),
)
GAPS = st.sampled_from([b" "] * 8 + [b"\t", b"  ", b" \t ", b"\x0b", b"\x0c "])
ENDS = st.sampled_from([b"\n"] * 6 + [b"\r\n", b" \n", b" further columns\n", b"\n\n", b"\n \t\r\n"])
WRONG = st.sampled_from(
    [b"q1 Q0 a\x00 1 2 t\n", b"q1 Q0 a\xff 1 2 t\n", b"\xffq Q0 a 1 2 t\n", b"q1\n", b"q1 Q0 a 1 2 t\rq1 Q0 b 1 2 t\n"]
    + [b"q1 Q0 a 1 %b t\n" % score for score in (b"nan", b"1,5", b"1_0", b"\xef\xbc\x91", b".", b"-", b"0x1", b"1.2.3")]
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that is valid for TREC, most often in its usual form."""
    query = draw(st.sampled_from(["q1", "q1", "q1", "q2", "q10", "q3", "other"]))
    doc = draw(st.sampled_from(["a", "b", "c", "d"]) | st.from_regex("[e-hé中]{1,70}", fullmatch=True))
    fields = [query, "Q0", doc, "1", draw(NUMBERS), draw(st.sampled_from(["t", "t" * 80]))]
    return draw(GAPS).join(field.encode() for field in fields) + draw(ENDS)


def read(text: bytes) -> tuple[dict[str, dict[str, float]], set[int]]:
    """Scores by query and document, and the numbers of the lines that are wrong."""
    run: dict[str, dict[str, float]] = {}
    wrong = set()
    for number, line in enumerate(text.split(b"\n"), 1):
        fields = re.split(rb"[ \t\r\x0b\x0c]+", line.strip(b" \t\r\x0b\x0c"))
        if fields == [b""]:
            continue
        try:
            query, _, doc, _, score, _ = (field.decode() for field in fields[:6])
            assert not re.search(rb"[\x00-\x08\x0e-\x1f]|\r(?!$)", line)
            assert re.fullmatch(NUMBER, score, re.IGNORECASE)
            ranking = run.setdefault(query, {})
            assert query not in QRELS or doc not in ranking
            with np.errstate(over="ignore"):
                ranking[doc] = float(np.float32(float(score)))
        except (ValueError, AssertionError):
            wrong.add(number)
    return run, wrong


def reciprocal_ranks(run: dict[str, dict[str, float]]) -> dict[str, float]:
    """The measure by sorting, ties by document id descending."""
    values = {}
    for query in sorted(run.keys() & QRELS.keys()):
        ranking = sorted(run[query], key=lambda doc: (run[query][doc], doc.encode()), reverse=True)
        ranks = [rank for rank, doc in enumerate(ranking, 1) if doc in QRELS[query]]
        values[query] = 1 / ranks[0] if ranks else 0.0
    return values


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_run_files_are_read_as_python_reads_them(tmp_path: Path, data: st.DataObject) -> None:
    parts = data.draw(st.lists(lines(), max_size=40))
    if data.draw(st.integers(0, 3)) == 0:
        parts.insert(data.draw(st.integers(0, len(parts))), data.draw(WRONG))
    if data.draw(st.booleans()):
        parts.sort(key=lambda line: line.split()[0])
    text = b"".join(parts)
    if data.draw(st.booleans()):
        text = text.removesuffix(b"\n")
    path = tmp_path / "run"
    path.write_bytes(text)
    run, wrong = read(text)
    if not run or wrong:
        with pytest.raises(DataError) as caught:
            evaluate(QRELS, path, "rr")
        found = re.search(r"run:(\d+): ", str(caught.value))
        assert int(found[1]) in wrong if found else "contains no run lines" in str(caught.value) and not wrong
    elif not run.keys() & QRELS.keys():
        assert evaluate(QRELS, path, "rr").unjudged_queries == len(run)
    else:
        values = evaluate(QRELS, path, "rr").per_query
        assert {query: row["rr"] for query, row in values().items()} == reciprocal_ranks(run)
