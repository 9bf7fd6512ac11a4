from __future__ import annotations

from rageval_spec.data.origin import Origin


def test_an_origin_is_told_in_one_line() -> None:
    documents = {"a.md": "v1", "b.md": "v2", "c.md": "v1", "d.md": "v9"}
    origin = Origin("2.1", "2026-05-01", "by hand", "true", 180, 1200, documents, "0")
    assert origin.describe() == (
        "version 2.1; created 2026-05-01; made: by hand; audited; 180 of 1,200 questions reviewed by people; "
        "source documents a.md v1, b.md v2, c.md v1 and others"
    )
    assert Origin(audited="2026-05-02", reviewed=3).describe() == "audited 2026-05-02; 3 questions reviewed by people"
    assert Origin().describe() == ""
