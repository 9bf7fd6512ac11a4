"""What judging takes: calls of a real program to a chat endpoint, with kills, budgets and two monitors."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.history.database import open_history
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.spec import load
from tests.command_line import invoke
from tests.history.servers import run_server
from tests.models.chat_endpoint import ChatServer, completion, refusal
from tests.models.endpoint import Answer

MONITOR = """
import sys
from rageval_spec.cli import main
from rageval_spec.monitoring import service
service.LEASE, service.FIRST_CLAIM = 4.0, 20
service.MonitorLoop._most = 20
main()
"""


class Endpoint(ChatServer):
    """Takes `seconds` for a reply, and says yes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        super().__init__(self.reply)

    def reply(self, number: int, body: dict[str, Any]) -> Answer:
        time.sleep(self.seconds)
        return Answer(completion())

    def count(self) -> Counter[str]:
        """How often each question was asked."""
        return Counter(body["messages"][-1]["content"] for body in self.calls)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


def write_spec(folder: Path, metrics: str, endpoint: Endpoint, **monitor: Any) -> Path:
    history = monitor.pop("history", None)
    spec = {
        "version": 1,
        "name": "bot",
        "systems": {"live": {"use": "file", "path": "traces.jsonl", "follow": True}},
        "models": {
            "llm": {
                "use": "chat",
                "base_url": endpoint.url,
                "model": "tiny",
                "concurrency": 4,
                "price": {"input": 50, "output": 50},
            }
        },
        "judges": {
            "strict": {"use": "binary", "model": "llm", "per": "answer"},
            "fast": {"use": "cascade", "steps": ["overlap", "strict"]},
        },
        "metrics": json.loads(metrics),
        "monitor": {"every": "1s", "settle": "1s", "alerts": [], **monitor},
    } | ({} if history is None else {"history": {"use": "postgres", "url": history}})
    (folder / "spec.yaml").write_text(json.dumps(spec))
    return folder / "spec.yaml"


def write_traces(folder: Path, count: int, sure: int = 0) -> None:
    """Traces of the last day; of the first ones, overlap is sure."""
    rows = []
    for at in range(count):
        began = time.gmtime(time.time() - 86_000 + 86_000 * at / count)
        answer = f"Bob baked cake number {at} in Paris."
        context = answer if at < sure else answer.replace("Paris", "Rome")
        rows.append({"id": f"t{at:03}", "question": f"What is {at}?", "answer": answer, "contexts": [context],
                     "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", began)})  # fmt: skip
    (folder / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def judge_all(spec: Path) -> None:
    """A monitor at a time at which all is due."""
    offset = 0.0
    with open_monitor(load(spec), clock=lambda: time.time() + offset) as loop:
        loop.poll()
        offset = 10.0
        loop.run_once()


def start(spec: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", MONITOR, "monitor", "run", str(spec), *options])


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


JUDGED, FREE = '["latency", {"use": "faithfulness", "judge": "strict"}]', '["latency"]'
FILLING = ("--since", "30d", "--metric", "faithfulness")


def test_a_new_metric_is_planned_filled_killed_and_filled_to_its_end(tmp_path: Path, endpoint: Endpoint) -> None:
    write_traces(tmp_path, 60)
    judge_all(write_spec(tmp_path, FREE, endpoint))
    spec = write_spec(tmp_path, JUDGED, endpoint)
    planned = invoke("monitor", "plan", str(spec), *FILLING).output
    assert "faithfulness: 60 earlier traces without a value" in planned
    assert "llm  60 calls" in planned
    assert "about 0.94 USD" in planned
    assert endpoint.calls == []
    endpoint.seconds = 0.1
    killed = start(spec, "--once", *FILLING)
    wait_for(lambda: len(endpoint.calls) > 20)
    killed.kill()
    killed.wait()
    endpoint.seconds = 0.0
    told = invoke("monitor", "run", str(spec), "--once", *FILLING).output
    assert "faithfulness: 60 earlier traces judged\n" in told
    assert "faithfulness: 60 judged\n" in told
    assert len(endpoint.count()) == 60
    assert len(endpoint.calls) <= 60 + 4  # at most those that were under way
    assert "faithfulness: 0 earlier traces" in invoke("monitor", "plan", str(spec), *FILLING).output


def test_a_filling_leaves_the_budget_to_new_traces_and_goes_on_later(tmp_path: Path, endpoint: Endpoint) -> None:
    write_traces(tmp_path, 40)
    judge_all(write_spec(tmp_path, FREE, endpoint))
    spec = write_spec(tmp_path, JUDGED, endpoint, budget={"calls": "25 per 1d"})
    assert "within about 38 h" in invoke("monitor", "plan", str(spec), *FILLING).output
    told = invoke("monitor", "run", str(spec), "--once", *FILLING).output
    assert "25 earlier traces judged; run this again for the others, when the budget has room for them" in told
    assert "faithfulness: 25 judged; 15 traces settled without this metric" in told
    assert "budget: 0 calls left of 25 calls" in invoke("monitor", "plan", str(spec)).output
    write_spec(tmp_path, JUDGED, endpoint, budget={"calls": "1000 per 1d"})
    assert "15 earlier traces judged\n" in invoke("monitor", "run", str(spec), "--once", *FILLING).output
    assert endpoint.count() == Counter(dict.fromkeys(endpoint.count(), 1))
    assert len(endpoint.calls) == 40


def test_a_short_budget_judges_what_the_cheap_judge_is_sure_of_and_a_part_of_the_rest(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    write_traces(tmp_path, 200, sure=80)
    spec = write_spec(tmp_path, '[{"use": "faithfulness", "judge": "fast"}]', endpoint, budget={"calls": "30 per 1d"})
    judge_all(spec)
    assert 5 < len(endpoint.calls) <= 30
    with open_history(tmp_path / ".rageval" / "history.db") as history:
        found = history.connection.execute(
            "SELECT trace_id, state, weight, reason FROM rageval_judgements ORDER BY trace_id"
        )
    assert [(state, weight) for _, state, weight, _ in found[:80]] == [("judged", 1.0)] * 80
    judged = [weight for _, state, weight, _ in found[80:] if state == "judged"]
    assert len(judged) == len(endpoint.calls)
    assert sum(judged) == pytest.approx(120, rel=0.5)
    reasons = {reason for _, state, _, reason in found if state == "over_budget"}
    assert reasons == {
        "the budget does not suffice for all; this trace was left out at random, and any that are judged count for it"
    }
    told = invoke("monitor", "plan", str(spec)).output
    assert f"budget: {30 - len(endpoint.calls)} calls left of 30 calls" in told
    assert re.search(r"UTC; as traffic is now, traces need about \d+ calls? until then", told)


def test_an_old_trace_has_as_long_as_a_new_one_until_its_judgement_fails(tmp_path: Path, endpoint: Endpoint) -> None:
    write_traces(tmp_path, 2)
    endpoint.chat = lambda number, body: refusal("no such model")
    spec = write_spec(tmp_path, JUDGED, endpoint, retry_for="90m")
    judge_all(spec)  # the older one began a day ago
    assert "faithfulness: 2 waiting" in invoke("monitor", "plan", str(spec)).output
    endpoint.chat = endpoint.reply
    with open_monitor(load(spec), clock=lambda: time.time() + 100) as loop:
        loop.run_once()
    assert "faithfulness: 2 judged" in invoke("monitor", "plan", str(spec)).output


def test_a_limit_on_cost_needs_a_price(tmp_path: Path, endpoint: Endpoint) -> None:
    spec = write_spec(tmp_path, JUDGED, endpoint, budget={"cost": "1 per 1h"})
    spec.write_text(spec.read_text().replace('"price"', '"headers"').replace('{"input": 50, "output": 50}', "{}"))
    write_traces(tmp_path, 1)
    for command in (("validate", str(spec)), ("monitor", "run", str(spec), "--once")):
        told = invoke(*command)
        assert told.exit_code == 2
        assert "a limit on cost needs the price of 'tiny'" in told.output


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with run_server() as (url, _):
        yield url


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
def test_two_monitors_share_the_work_and_one_is_killed(tmp_path: Path, endpoint: Endpoint, place: str | None) -> None:
    write_traces(tmp_path, 240)
    endpoint.seconds = 0.05
    spec = write_spec(tmp_path, JUDGED, endpoint, history=place)
    first, second = start(spec), start(spec)

    def count() -> int:
        with open_history(place or tmp_path / ".rageval" / "history.db") as history:
            return int(
                history.connection.execute(
                    "SELECT COUNT(*) FROM rageval_judgements WHERE value IS NOT NULL AND series = 2"
                )[0][0]
            )

    wait_for(lambda: len(endpoint.calls) > 70)
    first.kill()
    first.wait()
    wait_for(lambda: count() == 240)
    second.send_signal(signal.SIGTERM)
    assert second.wait() == 0
    with open_history(place or tmp_path / ".rageval" / "history.db") as history:
        sums = "SELECT SUM(judged), SUM(weights), SUM(weighted) FROM rageval_panes WHERE series = 2"
        assert [tuple(map(float, row)) for row in history.connection.execute(sums)] == [(240, 240, 240)]
        rows = "SELECT COUNT(*), COUNT(DISTINCT trace_id) FROM rageval_judgements WHERE series = 2"
        assert list(history.connection.execute(rows)) == [(240, 240)]
    asked = endpoint.count()
    assert len(asked) == 240
    assert sum(asked.values()) <= 240 + 4  # at most those that were under way in the one that was killed
