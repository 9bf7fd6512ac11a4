from __future__ import annotations

import base64
import gzip
import json
import re

from rageval_spec.reports.shared.page.packing import dump_json, pack, write_script


def test_what_is_packed_can_be_read_again() -> None:
    content = dump_json({"text": "</script> \U0001f600 é", "number": 0.5})
    packed = pack(content)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed)
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == {"text": "</script> \U0001f600 é", "number": 0.5}


def test_no_time_is_packed() -> None:
    header = base64.b64decode(pack(b"a"))[:8]
    assert header[4:8] == bytes(4)


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert dump_json(["a\ud800b"]) == b'["a?b"]'


def test_a_script_hands_over_its_part() -> None:
    assert write_script("cards-0", "QUJD") == b'ragevalPart("cards-0","QUJD");\n'
