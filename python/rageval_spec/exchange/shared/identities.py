"""Ids that depend only on what they name, so that what is sent twice is stored once."""

from __future__ import annotations

import hashlib
import json
from uuid import UUID


def make_hex(*parts: str, digits: int = 32) -> str:
    """Hexadecimal digits for some texts: others for other texts, and never all zero."""
    return hashlib.sha256(json.dumps(["rageval-spec", *parts]).encode()).hexdigest()[:digits]


def make_uuid(*parts: str) -> str:
    """A UUID (version 8, of RFC 9562) for some texts."""
    digits = make_hex(*parts)
    return str(UUID(f"{digits[:12]}8{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:]}"))
