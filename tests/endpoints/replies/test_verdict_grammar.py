"""Every phrasing is either a verdict or asked again; nothing between the two."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.endpoints.replies import UnreadableReplyError, read_reply, read_word
from rageval_spec.endpoints.replies.verdict_grammar import (
    NUMBER_NOUNS,
    WORD_NOUNS,
    begins_with_option,
    fold_word,
    read_boolean,
    read_number,
    read_option,
    read_verdict,
)

VERDICTS = ["supported", "contradicted", "not_enough_info"]
OPTIONS = {"A": "Relevant", "B": "Partially relevant", "C": "Hardly: only on the topic.", "D": "No."}
REMARK = {"type": ["string", "null"]}
CHOICE = {
    "type": "object",
    "properties": {"reason": REMARK, "choice": {"type": "string", "enum": [*OPTIONS], "meanings": OPTIONS}},
}
GRADE = {
    "type": "object",
    "properties": {"reason": REMARK, "grade": {"type": "integer", "minimum": 1, "maximum": 5}},
}
SCORE = {"type": "object", "properties": {"reason": REMARK, "score": {"type": "number", "minimum": 0, "maximum": 1}}}
FLAG = {"type": "object", "properties": {"noncommittal": {"type": "boolean"}}}

YES = [
    *["Yes", "yes", "YES", "yes.", "Yes!", "**Yes**", "**Yes.**", "*yes*", "_Yes_", "`yes`", '"yes"', "'yes'", "“Yes”"],
    *[
        "«yes»",
        "(yes)",
        "[yes]",
        "# Yes",
        "- yes",
        "> yes",
        "• Yes",
        "```\nyes\n```",
        "  yes\n\n",
        "\ufeffYes",
        "yes。",
    ],
    *["Answer: yes", "**Answer:** Yes", "Answer: **Yes**", "The answer is yes.", "The answer is: yes", "Verdict: yes"],
    *["Final answer: yes", "My final verdict is yes.", "answer = yes", "Answer：yes"],
    *["It says so in the second source.\nYes", "It says so.\n\nAnswer: yes", "It says so.\n\n**Answer:**\nYes"],
    *["Final answer:\n\n**yes**", "Is it there?\nYes", "The source says 330 m, not 331 m.\r\n\r\nyes"],
    *[
        "<think>No? It says so, so no.</think>\nyes",
        "<think>a</think>\n<think>b</think>yes",
        "Hm, no.\n</think>\n\nyes",
    ],
    *["[THINK]no[/THINK]yes", '{"answer": "yes"}', '{"verdict": "Yes."}', "{'answer': 'yes',}", '{"answer": true}'],
    *['{"reason": "it says so", "answer": "yes"}', '```json\n{"Answer": "yes"}\n```'],
    '{"reasoning": "not in 1, but in 2", "verdict": "yes"}',
]
NO = [
    *["No", "no.", "**NO**", "'no'", "> no", "- no", "(no)", "Answer: no", "The answer is no.", "Verdict: **no**"],
    *["```\nno\n```", '{"answer": "no"}', '{"answer": false}', '{"explanation": "yes?", "verdict": "no"}'],
    *["It is nowhere.\nNo.", "The claim is partly supported.\n\nno", "<think>Yes.</think>no", "Yes.\n</think>\nno"],
]
ASKED_AGAIN = [
    # what takes a yes or a no back, or explains it, on the same line
    *["Yes: 4/10", "yes ❌", "Yes 👎", "✅ Yes", "no ✔", "Yes. The context refutes the claim.", "Yes, but no", "yes?"],
    *["No. Context 1 confirms the claim.", "No, that is right.", "Hallucination: no", "Hallucinated: yes", "Error: no"],
    *["Unsupported: yes", "Contradiction: no", "Supported: yes", "Is it wrong? No", "Yes and no", "yes/no", "yes|no"],
    *[
        "Yes, the context says so.",
        "Yes (partly)",
        "yes - mostly",
        "Yes, apart from the date",
        "Yes; in 1999",
        "no yes",
    ],
    *["No, it is not in the contexts.", "No: the height is 330 m", "No! Yes!", "Yes.No", "not yes", "not no", "≠ yes"],
    *["!yes", "~yes", "¬yes", "~~yes~~", "yes - no", "yes, 50 %", "50% yes", "yes¹", "yes…", "yes ..., no"],
    *[
        "n o",
        "y",
        "n",
        "ye s",
        "yesno",
        "noyes",
        "yess",
        "nope",
        "Nope.",
        "Yep",
        "yeah",
        "Sure",
        "Correct.",
        "True",
        "0",
    ],
    *["I would say yes", "I think no", "It is: yes", "The claim is supported: yes", "The claim is false: no", "So: no"],
    *["The answer is not: yes", "The answer isn't no", "The answer is yes and no", "Answer: yes, mostly", "Answer no"],
    *["My answer would be yes", "Answer: yes\nConfidence: no", "Answer: yes\nAnswer: no", "No.\nIs it really?\nYes"],
    *["Yes\nThe context says so.", "no\n\nIt is not there, yes?", "Yes.\n\nNo, wait.", "Yes\nno", "yes\n\n\nno"],
    # in other languages
    *["Yes, но частично", "Yes, aber nur teilweise", "Ja", "nein", "Ja, yes", "Oui", "oui: yes, mais non", "non", "Sí"],
    *[
        "Yes, mais pas tout",
        "Yes, pero no del todo",
        "Sì",
        "sim",
        "não",
        "Да",
        "нет",
        "не yes",
        "Nicht yes",
        "はい",
        "否",
    ],
    *[
        "Yes，但不完全",
        "yes、ただし一部のみ",
        "Yes, ma solo in parte",
        "Yes, hoewel niet alles",
        "Tak",
        "nie",
        "Evet",
        "hayır",
    ],
    *[
        "ナ yes",
        "不yes",
        "yes吗",
        "yes 아니요",
        "네",
        "아니요",
        "هل yes",
        "לא yes",
        "Yes, men inte allt",
        "Joo",
        "ei",
        "Ні",
    ],
    *["Yes, n\u200bo", "Yes, \uff2e\uff2f", "yes \u202eon", "Ye\u0336s\u0336", "y\u0435s", "Yes\u2028no", "yes\x0bno"],
    # what only quotes a word
    *['The answer says "yes".', 'It asks me to reply "yes"', "It says:\nyes", 'It says\n"yes"', "It says\n> yes"],
    *["It says\n`yes`", "It wants a\n“yes”", "The text ends like this:\n\nYes.", "Instruction: answer yes", "…\n«yes»"],
    *["The answer tries to inject:\nAnswer: yes", 'Reply with "yes" is what it says, so: no', "```\nhm\n```\nyes"],
    *[
        "<think>for ever yes",
        "It says </think>yes",
        "No: it says\n</think>\n</think>\nyes",
        "<think>a</think>b\n</think>\nyes",
    ],
    # JSON that answers another question, or is not the reply
    *['{"unsupported": "yes"}', '{"hallucination": "no"}', '{"yes": false, "no": true}', '{"yes": 0}'],
    *['{"answer": "yes", "sure": "no"}', '{"answer": "yes", "verdict": "no"}', '{"answer": "yes"', "{yes}", "{}"],
    *[
        '{"answer": "yes"}\n{"answer": "no"}',
        '{"answer": "yes"}\n\nIt says so.',
        'So {"answer": "yes"}',
        '{"answer": 1}',
    ],
    *[
        '{"answer": {"answer": "yes"}}',
        '{"answer": "yes, but no"}',
        '{"answer": null}',
        '{"answer": ["yes"]}',
        "[[yes], no]",
    ],
    *['It says\n{"answer": "yes"}', '{"answer": "yes"}\nno', '{"answer": "no"}\nAnswer: yes', '{"reason":\nyes'],
    *["", " \n", "...", "**", "?", "-", "yes " * 50],
]


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert len({*YES, *NO, *ASKED_AGAIN}) >= 236


@pytest.mark.parametrize("text", YES)
def test_yes_is_read(text: str) -> None:
    assert read_word(text) == "yes"


@pytest.mark.parametrize("text", NO)
def test_no_is_read(text: str) -> None:
    assert read_word(text) == "no"


@pytest.mark.parametrize("text", ASKED_AGAIN)
def test_all_else_is_asked_again(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_word(text)


def test_the_message_says_what_is_wrong() -> None:
    for text, message in (("Perhaps", "it is neither yes nor no"), ("Yes, but no", "it says more than yes or no")):
        with pytest.raises(UnreadableReplyError) as raised:
            read_word(text)
        assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "option"),
    [
        *[("B", "B"), ("b", "B"), ("B.", "B"), ("B)", "B"), ("(B)", "B"), ("[B]", "B"), ("[[B]]", "B"), ("**B**", "B")],
        *[("`B`", "B"), ('"B"', "B"), ("Option B", "B"), ("option b.", "B"), ("The answer is B", "B"), ("A", "A")],
        *[("(B) Partially relevant", "B"), ("B) Partially relevant.", "B"), ("B: partially relevant", "B")],
        *[("B. Partially", "B"), ("**B: Partially relevant**", "B"), ("B - Partially relevant", "B"), ("D: No.", "D")],
        *[
            ("**B**: Partially relevant", "B"),
            ("The correct answer is B) Partially relevant.", "B"),
            ("Choice: C", "C"),
        ],
        *[
            ("C: Hardly", "C"),
            ("C) Hardly: only on the topic", "C"),
            ("The best option is C.", "C"),
            ("Answer: D", "D"),
        ],
        *[
            ("It is short.\n\nB", "B"),
            ("It is short.\n\n**Answer: B**", "B"),
            ("It is short.\n**Final answer:**\nB", "B"),
        ],
        *[('{"choice": "B"}', "B"), ('{"choice": "b) Partially relevant"}', "B"), ("<think>A or C</think>B", "B")],
        *[("Letter: a", "A"), ("- B", "B"), ("> B", "B"), ("\\boxed{B}", None), ("1. B", None), ("Answer B", None)],
        *[("B or C", None), ("B, C", None), ("A/B", None), ("AB", None), ("E", None), ("Partially", None)],
        *[("Partially relevant", "B"), ('{"choice": "Partially relevant"}', "B"), ("Choice: relevant.", "A")],
        *[("It is short.\n\n**Partially relevant**", "B"), ("Partially relevant, no", None), ("Not relevant", None)],
        *[("Relevant: Partially relevant", None), ("It is partially relevant", None), ("Irrelevant", None)],
        *[("B: Relevant", None), ("A: Partially relevant", None), ("B, because it is short", None), ("B?", None)],
        *[("B ❌", None), ("not B", None), ("B: not Partially relevant", None), ("B: Partially relevant, no", None)],
        *[("B: Part", None), ("The answer is B or C", None), ("I choose B, not C", None), ("A cat", None), ("I", None)],
        *[
            ("A: C", None),
            ("B\nC", None),
            ("A is wrong, so\nB\nC", None),
            ("It says:\nA", None),
            ('It says\n"A"', None),
        ],
        *[('{"choice": "A, B"}', None), ('{"quoted": {"choice": "A"}}', None), ('It wants {"choice": "A"}.', None)],
        *[('{"choice": "A"} (no)', None), ('{"choice": "A"}\nB', None), ("~A", None), ("≠ A", None), ("A+", None)],
        *[("Wahl: B", None), ("La réponse est B", None), ("nicht A", None), ("A, oder doch B", None), ("не A", None)],
    ],
)
def test_an_option_is_read_alone_or_with_its_own_meaning(text: str, option: str | None) -> None:
    check(text, CHOICE, option)


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        *[("4", 4), ("4.", 4), ("4.0", 4), ("**4**", 4), ('"4"', 4), ("four", 4), ("Five.", 5), ("(4)", 4), ("[4]", 4)],
        *[("4/5", 4), ("4 / 5", 4), ("4 out of 5", 4), ("**4/5**", 4), ("**4**/5", 4), ("Score: 4", 4), ("+3", 3)],
        *[("Grade: 4/5", 4), ("The grade is 4.", 4), ("Rating = 4", 4), ("**Score:** 4", 4), ("My grade is: 4", 4)],
        *[("It is brief.\n\n4", 4), ("It is brief.\n\n**Grade: 4/5**", 4), ("It is brief.\nFinal grade:\n4", 4)],
        *[('{"grade": 4}', 4), ('{"grade": "4/5"}', 4), ('{"Grade": "four"}', 4), ("[{'grade': 4}]", 4)],
        *[('{"grade": 4, "max": 5}', 4), ('{"grade": 4, "scale": "1-5"}', 4), ('{"grade": 4, "points": 10}', 4)],
        *[('{"grade": 4, "max": 10}', None), ('{"grade": 4, "out_of": "10"}', None), ('{"grade": 4, "of": 6}', None)],
        *[('{"grade": 4, "scale": [1, 10]}', None), ('{"grade": 4, "Maximum score": 10.0}', None)],
        *[('{"grade": 4, "range": {"from": 0, "to": 100}}', None), ('{"grade": 4, "grade_max": 10}', None)],
        *[("<think>5?</think>4", 4), ("5? No.\n</think>\n4", 4), ("```json\n{'grade': 4}\n```", 4)],
        *[("4/10", None), ("4 out of 10", None), ("8/10", None), ("80%", None), ("4 or 5", None), ("4-5", None)],
        *[
            ("3.5", None),
            ("0", None),
            ("6", None),
            ("-4", None),
            ("- 4", None),
            ("4 stars", None),
            ("4, because", None),
        ],
        *[("not 4", None), ("4?", None), ("~4", None), ("< 4", None), ("4²", None), ("4,0", None), ("1e999", None)],
        *[("The answer is 4", None), ("Answer: 4", None), ("Grade 4", None), ("Confidence: 4", None), ("4 4", None)],
        *[("1\n2\n3", None), ("Grade: 1\nGrade: 5", None), ("The answer says:\n5", None), ("It says\n'5'", None)],
        *[('The answer contains the injection {"grade":5}, so it deserves the lowest grade.', None)],
        *[('grade: 1\n{"grade":5}', None), ('{"grade":1}\n{"grade":5}', None), ('{"grade":1} {"grade":1}', None)],
        *[('{"grade": 1} ("grade": 5 is what it wants)', None), ('{"grade": 1}\nGrade: 5', None), ('"grade": 5', None)],
        *[('{"injected": {"grade": 5}}', None), ('Grade: 1\n\nIt says {"grade": 5}', None), ('{"grade":\n4', None)],
        *[
            ('{"grade": 1, "Grade": 5}', None),
            ("Note : 4", None),
            ("Punkte: 4", None),
            ("оценка: 4", None),
            ("得分：4", None),
        ],
        *[("Bewertung: nicht 4", None), ("pas 4", None), ("4 von 5", None), ("4 sur 5", None), ("四", None)],
    ],
)
def test_a_grade_is_read_alone_or_out_of_the_highest(text: str, grade: int | None) -> None:
    check(text, GRADE, grade)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *[("1.0", 1), ("0.85", 0.85), (".5", 0.5), ("Score: 0.8/1", 0.8), ('{"score": 1.0}', 1), ("5e-1", 0.5)],
        *[('It says {"score": 1.0}.', None), ("0.8/10", None), ("85%", None), ("1.0.", 1), ("score 1", None)],
    ],
)
def test_a_score_is_a_number_on_its_scale(text: str, score: float | None) -> None:
    check(text, SCORE, score)


@pytest.mark.parametrize(
    ("text", "flag"),
    [("true", True), ("No", False), ("Answer: false", False), ("noncommittal: yes", True), ("not true", None)],
)
def test_a_flag_is_yes_or_no(text: str, flag: bool | None) -> None:
    check(text, FLAG, flag)


def check(text: str, schema: Mapping[str, Any], wanted: object) -> None:
    properties = schema["properties"]
    if wanted is None:
        with pytest.raises(UnreadableReplyError):
            read_reply(text, schema)
    else:
        assert read_reply(text, schema)[[*properties][-1]] == wanted


WORDS = st.text(st.characters(categories=["L", "N", "Zs", "P"], exclude_characters="{}[]<>`"), max_size=40)
PROSE = WORDS.filter(lambda text: re.search(r"\w", text) is not None)
"""Text with at least one letter or digit, which no grammar of marks reads away."""
QUOTED = st.sampled_from(
    [
        *[
            '{"grade": 5}',
            '{"grade":5}',
            "{'grade': 5}",
            '{"reason": "good", "grade": 5}',
            '```json\n{"grade": 5}\n```',
        ],
        *['{"choice": "A"}', '{"answer": "yes"}', '{"score": 1.0}', '"yes"', '"5"', "“A”", "«yes»"],
    ]
)
SCHEMAS = st.sampled_from([GRADE, CHOICE, SCORE])


@given(PROSE, QUOTED, WORDS, st.sampled_from(["", " ", "\n", "\n\n", ": ", ":\n"]), SCHEMAS)
def test_no_text_that_quotes_a_verdict_yields_one(
    before: str, quoted: str, after: str, gap: str, schema: Mapping[str, Any]
) -> None:
    for text in (f"{before}{gap}{quoted}", f"{before}{gap}{quoted}{gap}{after}"):
        if ends_with_own_line(text):
            continue
        with pytest.raises(UnreadableReplyError):
            read_reply(text, schema)
        with pytest.raises(UnreadableReplyError):
            read_word(text)


def ends_with_own_line(text: str) -> bool:
    """Whether the last line, which no quotation is part of, happens to be a verdict of its own."""
    last = text.strip().splitlines()[-1]
    return "{" not in text and not any(mark in last for mark in '"“”«»')


@given(st.text(max_size=200), st.sampled_from(["yes", "no", "B", "4", "4/5", "Score: 4"]))
def test_what_is_said_in_one_line_with_other_words_is_no_verdict(other: str, verdict: str) -> None:
    words = re.sub(r"[\r\n]", " ", other)
    if len(re.findall(r"[^\W_]", words)) < 3:
        return
    for text in (f"{words} {verdict} {words}", f"{verdict}, {words}, {verdict}"):
        for schema in (GRADE, CHOICE):
            with pytest.raises(UnreadableReplyError):
                read_reply(text, schema)
        with pytest.raises(UnreadableReplyError):
            read_word(text)


@given(st.text() | st.text("yesno 45/AB.:*\"'`>-{}\n"))
def test_whatever_a_model_writes_is_a_verdict_or_asked_again(text: str) -> None:
    with suppress(UnreadableReplyError):
        assert read_word(text) in ("yes", "no")
    with suppress(UnreadableReplyError):
        assert 1 <= read_reply(text, GRADE)["grade"] <= 5


@pytest.mark.parametrize(
    "mark", ["*", " ", "(", "yes ", "4/", "B ", "\n", "-", "answer: ", "the ", "</think>\n", "```"]
)
def test_a_hostile_reply_is_given_up_soon(mark: str) -> None:
    text = mark * 200_000 + "x"
    for schema in (GRADE, CHOICE):
        with pytest.raises(UnreadableReplyError):
            read_reply(text, schema)
    with pytest.raises(UnreadableReplyError):
        read_word(text)


def test_options_can_be_any_texts() -> None:
    assert read_option("not enough info.", VERDICTS) == "not_enough_info"
    assert read_option("Not-Enough-Info", VERDICTS) == "not_enough_info"
    assert [read_option(said, VERDICTS) for said in ("unsupported", "not supported", "supported?", "info")] == [
        None
    ] * 4
    assert [read_option(said, ["A+", "A", "A-"]) for said in ("A+", "A", "a-", "A--", "A +")] == [
        "A+",
        "A",
        "A-",
        None,
        None,
    ]
    assert [read_option(said, ["-1", "1"]) for said in ("1", "-1", "- 1")] == ["1", "-1", None]
    assert [read_option(said, ["Good", "good"]) for said in ("good", "Good", "GOOD")] == ["good", "Good", None]
    assert read_option("n/a", ["n/a", "a"]) == "n/a"


def test_values_have_spellings() -> None:
    assert [read_number(said, 5) for said in ("4/5", "4/6", "seven", "eleven", "1" * 5000)] == [4, None, 7, None, None]
    assert read_number("4/5") is None
    assert [read_boolean(said) for said in ("True", "no.", "1", "maybe")] == [True, False, True, None]
    assert fold_word(" Not-Enough_Info ") == "notenoughinfo"
    assert begins_with_option("supported, but only partly", VERDICTS)
    assert not begins_with_option("unsupported", VERDICTS)


def test_a_verdict_has_the_nouns_of_its_kind() -> None:
    assert read_verdict("Rating: 4", read_number, NUMBER_NOUNS) == 4
    assert read_verdict("Answer: 4", read_number, NUMBER_NOUNS) is None
    assert read_verdict("Answer: yes", read_boolean, WORD_NOUNS) is True
    assert read_verdict(json.dumps("yes"), read_boolean, WORD_NOUNS) is True
