"""Reading any text gives a spec or a `SpecError`, never another exception."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

pytestmark = pytest.mark.usefixtures("installation")

SPEC = """\
version: 1
name: whole
datasets: &d
  support: {use: folder, path: data, limit: 5}
systems:
  keyword: {use: ranking, path: {support: data/a.run}}
  sparse: &s {use: sparse, k1: 1.2, fields: {title: 2}, stop_words: [a, "b"]}
  second: {<<: *s, b: 0.5}
  remote: {use: remote, url: "https://${HOST}", api_key: "${secret:KEY}"}
  dense: {use: dense, model: minilm}
  fused: {use: hybrid, systems: [sparse, dense], weights: {dense: 2}}
models:
  e5: {use: http, url: "http://localhost", model: e5, api_key: "${secret:KEY}"}
judges:
  strict: {use: binary, model: e5}
metrics:
  - {use: faithful, judge: strict, models: {en: e5}}
  - ndcg@10
  - {use: recall, cutoff: 5, as: found}
ranking: {ties: input, depth: 10, tie_range: no}
gates:
  - {metric: ndcg@10, min: 0.4, on: lower}
  - {metric: found, system: second, baseline: sparse, max_drop: 0.02}
limits: {threads: 2}
reports: [terminal, {use: page, theme: dark}]
"""
PIECES = [
    *["\n", "  ", "- ", ": ", "? ", "{", "}", "[", "]", ",", "'", '"', "#", "|", ">", "&a", "*a", "<<", "!!", "%", "@"],
    *["use", "null", "no", "1e3", "010", "12:30", ".nan", "2024-01-01", "${", "${A}", "$${", "${secret:A}", "\t", "\r"],
    *["\0", "\x85", "\u2028", "\ufeff", "😀", "\ud800", "\\x00", "---", "...", "0", "-1", "1" * 50, "ndcg", "a.b", "~"],
]
ENVIRONMENT = {"HOST": "example.org", "KEY": "hunter2", "A": "b: [c"}


def check(text: str, overrides: list[str]) -> None:
    try:
        loads(text, environment=ENVIRONMENT, overrides=overrides, check_files=True)
    except SpecError as error:
        assert error.diagnostics
        assert "hunter2" not in str(error)
        for diagnostic in error.diagnostics:
            assert diagnostic.position.line >= 1
            assert diagnostic.position.column >= 1
            assert "\n" not in diagnostic.message


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join))
@example("a: &a\n  <<: *a")
@example("? ? ? a")
@example("!<tag:yaml.org,2002:str> a: b")
@example("'': ''")
@example("version: !!str 1\nmetrics: !!str\n")
def test_random_text_gives_a_spec_or_diagnostics(text: str) -> None:
    check(text, [])


@given(
    st.lists(st.tuples(st.integers(0, len(SPEC)), st.integers(0, 12), st.sampled_from(["", *PIECES])), max_size=4),
)
def test_random_edits_give_a_spec_or_diagnostics(edits: list[tuple[int, int, str]]) -> None:
    text = SPEC
    for start, removed, inserted in edits:
        text = text[:start] + inserted + text[start + removed :]
    check(text, [])


PATHS = [
    *["version", "name", "datasets", "systems.sparse", "systems.sparse.fields.title", "systems.new.k1", "metrics.0"],
    *["metrics.1.as", "gates.0.min", "gates.9", "gates.0.min.deep", "ranking", "ranking.depth", "reports.1.use", "."],
    *["systems.second.use", "<<", "", "systems.remote.headers.X", "limits.threads"],
]


@given(
    st.lists(
        st.tuples(st.sampled_from(PATHS), st.lists(st.sampled_from(PIECES), max_size=4).map("".join)).map("=".join)
        | st.text(max_size=5),
        max_size=3,
    )
)
def test_random_overrides_give_a_spec_or_diagnostics(overrides: list[str]) -> None:
    check(SPEC, overrides)


def test_the_spec_to_edit_is_valid() -> None:
    spec = loads(SPEC, environment=ENVIRONMENT, check_files=False)
    assert [metric.name for metric in spec.metrics] == ["faithful", "ndcg@10", "found"]
