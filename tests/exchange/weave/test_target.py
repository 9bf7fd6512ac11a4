from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.endpoints.pacing import Clock
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.delivery import Receipt, send_parcels
from rageval_spec.exchange.weave.target import WeaveTarget, WeaveTargetNode
from rageval_spec.plugin import Context
from tests.answered_evaluation import value
from tests.endpoints.api_server import ApiServer, Asked
from tests.exchange.blocks import render_report
from tests.exchange.evaluations import make_traced
from tests.exchange.peers import run_peer
from tests.models.endpoint import Answer

KEY = "0123456789abcdef0123456789abcdef01234567"
SDK = ("weave", "weave>=0.54,<1")
PUBLISH = """
import json, os, sys
url, key, name, rows = map(json.loads, sys.argv[1:])
os.environ.update(WF_TRACE_SERVER_URL=url, WANDB_BASE_URL=url, WANDB_API_KEY=key, WANDB_ERROR_REPORTING="false",
                  WEAVE_USE_SERVER_CACHE="false")
import weave
client = weave.init("my-team/support")
weave.publish(weave.Dataset(name=name, rows=rows))
client.flush()
print(json.dumps(True))
"""


class WeaveServer:
    """A small Weave: tables and objects by their digests."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, Any]] = []
        self.interrupt: list[Answer] = []
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def close(self) -> None:
        self._server.close()

    def reply(self, asked: Asked) -> Answer:
        if self.interrupt:
            return self.interrupt.pop()
        if asked.route in ("/table/create", "/obj/create"):
            self.bodies.append((asked.route, asked.content))
            return Answer({"digest": "d" * 43, "row_digests": []})
        if asked.route == "/server_info":
            return Answer({"min_required_weave_python_version": "0.0.1"})
        project = {"name": "support", "entity": {"name": "my-team"}, "internalId": "UHJvamVjdEludGVybmFsSWQ6MQ=="}
        viewer = {"username": "me", "id": "1", "entity": "my-team", "flags": "{}", "teams": {"edges": []}}
        return Answer({"data": {"viewer": viewer, "project": project, "upsertModel": {"model": project}}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeaveServer]:
    for name in ("http_proxy", "all_proxy", "WF_TRACE_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    monkeypatch.setattr(Clock, "sleep", lambda self, seconds: None)
    running = WeaveServer()
    yield running
    running.close()


def send(server: WeaveServer, folder: Path | None = None, **options: Any) -> Receipt:
    values = [value("q0", "faithfulness", 0.5, reason="why"), value("q1", "faithfulness", None)]
    node = WeaveTargetNode(url=server.url, project="my-team/support", name="nightly run")
    target = WeaveTarget(node, Context("weave"))
    try:
        return send_parcels(target, make_traced({"q0": None, "q1": None}, values), folder, tool="weave", **options)
    finally:
        target.close()


def test_answers_and_values_become_a_dataset(server: WeaveServer, tmp_path: Path) -> None:
    assert send(server, tmp_path).render() == f"sent 1 dataset to {server.url}, project my-team/support\n"
    (_, table), (_, made) = server.bodies
    first, second = table["table"]["rows"]
    assert (first["question"], first["scores"], first["reasons"]) == (
        "Question q0?",
        {"faithfulness": 0.5},
        {"faithfulness": "why"},
    )
    assert second["scores"] == {"faithfulness": None}
    assert made["obj"]["object_id"] == "nightly-run"
    assert made["obj"]["val"]["rows"] == f"weave:///my-team/support/table/{'d' * 43}"
    assert send(server, tmp_path).render().startswith("sent nothing")
    assert len(server.bodies) == 2


def test_a_dry_run_sends_nothing_and_a_refusal_is_repeated(server: WeaveServer) -> None:
    shown: list[str] = []
    send(server, dry_run=True, show=shown.append)
    assert shown == ["2 rows -> the dataset 'nightly-run'"]
    assert not server.asked
    server.interrupt = [Answer({}, 429, Retry_After="3")]
    send(server)
    assert len(server.bodies) == 2


def test_errors_name_the_place_and_hide_the_key(server: WeaveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.interrupt = [Answer({"reason": f"bad key {KEY}"}, 403)]
    with pytest.raises(RagevalError, match=r"/table/create answered 403 .*bad key \*\*\*") as caught:
        send(server)
    assert KEY not in str(caught.value)
    server.interrupt = [Answer({"ok": True})]
    with pytest.raises(RagevalError, match="the reply has no 'digest'"):
        send(server)
    monkeypatch.delenv("WANDB_API_KEY")
    with pytest.raises(RagevalError, match="set the environment variable WANDB_API_KEY"):
        send(server)
    with pytest.raises(
        ValueError, match="'support' does not name an entity and a project; write both: my-team/support"
    ):
        WeaveTargetNode(project="support")


def test_what_we_send_is_what_the_real_package_sends(server: WeaveServer) -> None:
    send(server)
    ours, server.bodies = dict(server.bodies), []
    rows = ours["/table/create"]["table"]["rows"]
    assert run_peer(*SDK, PUBLISH, server.url, KEY, "nightly-run", rows)
    theirs = {path: drop_nulls(body) for path, body in server.bodies}
    assert json.dumps({path: drop_nulls(body) for path, body in ours.items()}, sort_keys=True) == json.dumps(
        theirs, sort_keys=True
    )


def drop_nulls(body: Any) -> Any:
    """A body without the keys that are null, which the real package writes out."""
    if not isinstance(body, dict):
        return body
    return {key: drop_nulls(value) for key, value in body.items() if value is not None}


def test_a_report_publishes_what_is_new(server: WeaveServer, tmp_path: Path) -> None:
    evaluation = make_traced({"q0": None})
    block = {"use": "weave", "url": server.url, "project": "my-team/support"}
    assert render_report(evaluation, tmp_path, **block) == (
        f"weave: sent 1 dataset to {server.url}, project my-team/support\n"
    )
    assert render_report(evaluation, tmp_path, **block).startswith("weave: sent nothing")
    assert len(server.bodies) == 2
