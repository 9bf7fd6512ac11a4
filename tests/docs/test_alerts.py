"""docs/alerts.md shows every notifier, and the JSON that `webhook` posts."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from rageval_spec import registry
from rageval_spec.data.alerts import export_alerts
from rageval_spec.notifiers.command import list_variables
from tests.notifiers.alert_messages import make_message

TEXT = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")


def list_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def shape(content: Any) -> Any:
    """The keys of objects, all the way down."""
    if isinstance(content, dict):
        return {key: shape(value) for key, value in content.items()} if "use" not in content else None
    return [shape(one) for one in content] if isinstance(content, list | tuple) else None


def test_every_notifier_is_there() -> None:
    words = {one["use"] for one in yaml.safe_load(list_blocks("yaml")[1])["notify"]}
    assert words == set(registry.builtin_words("notifiers"))
    assert all(f"**{word}**" in TEXT for word in words)


def test_the_json_has_the_keys_that_are_sent() -> None:
    (shown,) = list_blocks("json")
    assert shape(json.loads(shown)) == shape(json.loads(json.dumps(export_alerts([make_message()]))))


def test_the_variables_are_those_that_programs_get() -> None:
    names = [name.removeprefix("RAGEVAL_ALERT") for name in list_variables([make_message()])]
    assert [name for name in names if f"`{name}`" not in TEXT and f"`RAGEVAL_ALERT{name}`" not in TEXT] == []
