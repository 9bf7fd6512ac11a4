from __future__ import annotations

import re

from rageval_spec.reports.shared.page.files import write_files, write_page
from tests.reports.page import make_page_evaluation


def test_small_data_are_one_file() -> None:
    evaluation = make_page_evaluation()
    files = dict(write_files(evaluation, 3, None))
    assert files == {"": write_page(evaluation, 3, None)}
    names = re.findall(rb'data-part="([\w-]+)"', files[""])
    assert names == [b"head", b"cards-0", b"documents-0"]


def test_large_data_are_files_beside_the_page() -> None:
    files = list(write_files(make_page_evaluation(600), 3, "Nightly", largest=10_000))
    names = [name for name, _ in files]
    assert names == ["parts/cards-0.js", "parts/cards-1.js", "parts/cards-2.js", "parts/documents-0.js", "index.html"]
    page = files[-1][1]
    assert re.findall(rb'data-part="([\w-]+)"', page) == [b"head"]
    assert b"script-src &#x27;self&#x27; &#x27;sha256-" in page
    assert all(re.fullmatch(rb'ragevalPart\("[\w-]+","[A-Za-z0-9+/=]+"\);\n', content) for _, content in files[:-1])
