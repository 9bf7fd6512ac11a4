"""Wrong tables that every format must refuse, as rows of the plain text formats."""

from __future__ import annotations

QRELS = {
    "relevance is a fraction": (
        ("q1", "d1", "0.5"),
        "the relevance of document 'd1' for query 'q1' must be an integer, not '0.5'",
    ),
    "relevance is a word": (("q1", "d1", "high"), "must be an integer, not 'high'"),
    "relevance is not a number": (("q1", "d1", "nan"), "must be an integer, not 'nan'"),
    "relevance is infinite": (("q1", "d1", "inf"), "must be an integer, not 'inf'"),
    "relevance is missing": (("q1", "d1", ""), "must be an integer, not ''"),
    "query id is missing": (("", "d1", "1"), "no query_id"),
    "query id is blank": ((" ", "d1", "1"), "no query_id"),
    "document id is missing": (("q1", "", "1"), "no doc_id"),
    "judged twice": (("q0", "d0", "0"), "the document 'd0' is judged twice for query 'q0', first at "),
}
