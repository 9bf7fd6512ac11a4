"""Where people see a trace in its tool, and where messages say that the monitor's page is."""

from pathlib import Path

import pytest

from rageval_spec.data.traces import TraceLink
from rageval_spec.monitoring.assembly import find_trace_page, open_book, open_ledger
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.spec import loads

TEXT = """\
version: 1
name: bot
systems: {live: %s}
metrics: [latency]
monitor: {page: monitor.html%s}
"""


@pytest.mark.parametrize(
    ("system", "link", "page"),
    [
        (
            "{use: phoenix, project: p, url: 'http://px:6006'}",
            TraceLink("phoenix", "ab1"),
            "http://px:6006/redirects/traces/ab1",
        ),
        (
            "{use: langfuse, url: 'https://lf.example', public_key: a, secret_key: b}",
            TraceLink("langfuse", "a/b"),
            "https://lf.example/trace/a%2Fb",
        ),
        (
            "{use: mlflow, experiment: e, url: 'http://ml:5000'}",
            TraceLink("mlflow", "tr-1", others={"experiment_id": "7"}),
            "http://ml:5000/#/experiments/7/traces?selectedEvaluationId=tr-1",
        ),
        ("{use: mlflow, experiment: e, url: 'http://ml:5000'}", TraceLink("mlflow", "tr-1"), None),
        ("{use: phoenix, project: p}", TraceLink("langfuse", "ab1"), None),
        ("{use: file, path: traces.jsonl, follow: true}", TraceLink("file", "t1"), None),
    ],
)
def test_a_trace_has_a_page_where_its_tool_is_known(system: str, link: TraceLink, page: str | None) -> None:
    parts = build_parts(loads(TEXT % (system, ""), check_files=False))
    assert find_trace_page(parts, link) == page


def test_messages_name_the_page_by_its_whole_path_or_its_address(tmp_path: Path) -> None:
    for more, page in (("", str(tmp_path / "monitor.html")), (", page_url: 'https://a/b'", "https://a/b")):
        text = TEXT % ("{use: file, path: t.jsonl, follow: true}", more)
        spec = loads(text, folder=tmp_path, check_files=False)
        with open_ledger(spec) as ledger:
            assert open_book(spec, ledger).page == page
