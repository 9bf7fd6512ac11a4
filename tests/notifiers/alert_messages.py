"""Alerts, and the notifiers that send them, for the tests of notifiers."""

from pathlib import Path
from typing import Any

from rageval_spec import registry
from rageval_spec.data.alerts import AlertMessage, WorstAnswer
from rageval_spec.data.outcomes import Interval
from rageval_spec.plugin import Context, Notifier

BEGAN = 1_764_000_000.0
HOSTILE = "<!channel> @here *bold* <https://evil.example|click> \x1b[31m\u202e & <b>hi</b>"
"""An answer that tries to mention everybody, to make a link, and to act on a terminal and a web page."""

BUILT: list[Notifier[Any]] = []
"""What `build` made; the fixture `closing` closes it."""


def build(word: str, folder: Path = Path(), **keys: Any) -> Notifier[Any]:
    plugin = registry.load("notifiers", word)
    BUILT.append(plugin(plugin.node_type.model_validate({"use": word, **keys}), Context(word, folder)))
    return BUILT[-1]


def make_message(key: str = "k1", **others: Any) -> AlertMessage:
    known: dict[str, Any] = {
        "monitor": "support-bot",
        "name": "faithfulness below 0.700",
        "state": "firing",
        "severity": "critical",
        "summary": "faithfulness is 0.612 [0.551, 0.673] of 60 judged traces, below 0.700, in the last hour",
        "began": BEGAN,
        "metric": "faithfulness",
        "system": "live",
        "window": "hour",
        "value": 0.612,
        "interval": Interval(0.551, 0.673),
        "bound": 0.7,
        "samples": 60,
        "moved": {"model": "its replies are half as long as last week"},
        "worst": (WorstAnswer("t1", "Who wrote it?", HOSTILE, 0.0, "not supported", "https://traces.example/t1"),),
        "page": "https://watch.example/bot.html",
        "labels": {"metric": "faithfulness"},
    }
    return AlertMessage(key, **{**known, **others})


def make_end(key: str = "k1", **others: Any) -> AlertMessage:
    return make_message(key, state="resolved", ended=BEGAN + 1500, worst=(), summary="it is over", **others)
