""""""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re

from rageval_spec.drawing.html_shell import build_shell, dump_json, pack, write_script

PAGE = build_shell("<Nightly> & more", [("head", "QUJD")], has_files=False).decode()


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_only_the_pages_own_script_and_style() -> None:
    policy = html.unescape(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', PAGE)[0])
    scripts = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    assert (len(scripts), len(styles)) == (1, 1)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hash_of(scripts[0])}",
        f"style-src {hash_of(styles[0])}",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_page_itself_names_no_address() -> None:
    assert set(re.findall(r"https?://[^\s\"']+", PAGE)) == {"http://www.w3.org/2000/svg"}
    assert " style=" not in PAGE


def test_data_only_become_texts() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", PAGE)


def test_a_title_is_a_text() -> None:
    assert "<title>&lt;Nightly&gt; &amp; more</title>" in PAGE
    assert '<script type="text/plain" data-part="head">QUJD</script>' in PAGE


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
