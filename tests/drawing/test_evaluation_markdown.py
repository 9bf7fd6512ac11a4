"""What a comment shows beside the tables of systems; `tests/reports/test_markdown.py` has these."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.data.bands import make_scale
from rageval_spec.data.evaluation import Evaluation, JudgingCost, SliceResult
from rageval_spec.data.outcomes import CauseCount, Diagnosis, Interval
from rageval_spec.drawing.evaluation_view import draw_evaluation, write_comment
from tests.sample_evaluation import alter, make_evaluation


def write(evaluation: Evaluation) -> str:
    return write_comment(evaluation.name, draw_evaluation(evaluation, 3, verdicts_first=True))


def test_slices_are_a_folded_table() -> None:
    evaluation = make_evaluation()
    part = replace(evaluation.aggregates[0], mean=0.25, interval=None, slice="difficulty=hard")
    one = SliceResult("golden", "difficulty=hard", "difficulty", "difficulty is hard", 12, (part,), ())
    text = write(replace(evaluation, slices=(one,)))
    assert "<summary>Slices of bm25</summary>" in text
    assert "| slice | `ndcg@10` | queries |" in text
    assert "| `difficulty=hard` | **0.250** | 12 |" in text


def test_words_of_a_scale_stand_beside_the_means() -> None:
    text = write(replace(make_evaluation(), bands={"map": make_scale({"good": 0.4})}))
    assert "**0.420** \\[0.378, 0.462\\] good" in text
    assert "map: good ≥ 0.4, else below" in text


def test_questions_to_look_at_are_folded_and_appear_once() -> None:
    text = write(make_evaluation())
    assert text.count("<summary>Look at first") == 1
    assert text.count("- `q1` ·") == 1


def test_the_settings_tell_what_judging_took_and_which_prompts_judges_sent() -> None:
    judging = {"gpt": JudgingCost(1200, 340_000, 5600, 1.25), "own": JudgingCost(1, None, 3, None)}
    text = write(alter(make_evaluation(), judging=judging, prompts={"strict.verify": "ab12"}))
    fold = text.partition("<summary>Versions and settings</summary>")[2]
    assert "\njudging with gpt: 1,200 calls, 340,000 input tokens, 5,600 output tokens, 1.25 USD\n" in fold
    assert "\njudging with own: 1 call, input tokens unknown, 3 output tokens, cost unknown\n" in fold
    assert "\nprompt strict.verify sha256 ab12\n" in fold


def test_causes_are_counted_for_each_slice_behind_a_fold() -> None:
    shares = (("retrieval", 6), ("fine", 4))
    counts = [CauseCount("golden", "v1", cause, n, 10, n / 10, Interval(0.1, 0.9), "hard") for cause, n in shares]  # type: ignore[arg-type]
    whole = replace(make_evaluation(), diagnosis=Diagnosis("recall", "token_f1", None, 0.5, 0.7, tuple(counts)))
    told = write(whole)
    assert "<summary>Causes by slice of v1 on golden (1)</summary>" in told
    assert "| slice | questions | retrieval | fine |" in told
    assert "| `hard` | 10 | 6, 60% \\[10%, 90%\\] | 4, 40% \\[10%, 90%\\] |" in told


def test_a_metric_can_be_shown_as_a_percentage() -> None:
    shown = replace(make_evaluation(), show_as={"map": "percent"})
    text = write(shown)
    assert "**33.3%** \\[30%, 36.7%\\]" in text
    assert "| +6.5 pp \\[" in text
    assert "pp percentage points" in text
