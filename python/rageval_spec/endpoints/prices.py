"""The prices of tokens, as the providers' own pages stated them on a certain day; the data is in the JSON file here."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("prices.json")
_SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8})$")
"""The day at the end of a model's name, `gpt-4o-mini-2024-07-18`, which does not change its price."""


def find_price(host: str, model: str) -> tuple[float, float] | None:
    """US dollars per million tokens in and out; None if the file does not have this model on exactly this host.

    Another host with a model of the same name, such as a proxy or a region, can have another price.
    """
    models = _read()["hosts"].get(host.lower(), {})
    price = models.get(model) or models.get(_SNAPSHOT.sub("", model))
    return None if price is None else (price[0], price[1])


@cache
def _read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return content
