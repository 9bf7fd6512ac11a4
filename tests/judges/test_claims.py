from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.chat import CallError, ChatRequest, LimitError
from rageval_spec.data.findings import Claim, Criterion, Estimate, Failed, Finding, Questions
from rageval_spec.data.samples import Sample
from rageval_spec.judges.claims import ClaimsJudge, ClaimsNode
from rageval_spec.plugin import Context, ModelNode
from rageval_spec.plugin.budget import Budget
from tests.judges.chat_samples import (
    FAITHFULNESS,
    INSTRUCTIONS,
    POLITENESS,
    PRECISION,
    RECALL,
    SAMPLE,
    reply_to_anything,
)
from tests.judges.fakes import WordModel
from tests.judging.fakes import Answer, FakeChatModel, context_with, text_of

SPLIT = {
    "claims": [
        {"sentence": 1, "claim": "The tower is in Paris"},
        {"sentence": 2, "claim": "The tower is 331 m tall"},
        {"sentence": 2, "claim": "The tower is beautiful"},
    ]
}


def verdict(number: int, said: str, source: int = 1, evidence: str | None = "", reason: str = "so") -> dict[str, Any]:
    return {"claim": number, "source": source, "evidence": evidence, "reason": reason, "verdict": said}


VERDICTS = {
    "verdicts": [
        verdict(1, "supported", 1, "The tower stands in Paris."),
        verdict(2, "contradicted", 3, "330 m tall", "330 is not 331"),
        verdict(3, "not_enough_info", 0),
    ]
}


def make(model: FakeChatModel, folder: Path = Path(), budget: Budget | None = None, **keys: Any) -> ClaimsJudge:
    node = ClaimsNode.model_validate({"use": "claims", "model": "llm", **keys})
    return ClaimsJudge(node, context_with(model, folder, budget=budget or Budget()))


def assess(judge: ClaimsJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def test_a_text_is_split_into_claims_and_each_gets_a_verdict() -> None:
    model = FakeChatModel([SPLIT, VERDICTS])
    found = assess(make(model))
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(1 / 3)
    assert found.claims == (
        Claim("The tower is in Paris", 1, "supported", 0, 21, 0, "The tower stands in Paris.", "so"),
        Claim("The tower is 331 m tall", 0, "contradicted", 23, 40, 2, "330 m tall", "330 is not 331"),
        Claim("The tower is beautiful", 0, "not_enough_info", 23, 40, None, None, "so"),
    )
    assert len(model.calls) == 2


def test_a_prompt_shows_its_texts_and_no_metric() -> None:
    model = FakeChatModel([SPLIT, VERDICTS])
    assess(make(model))
    split, verify = map(text_of, model.calls)
    assert '<sentence number="2">\n"It is 331 m tall."\n</sentence>' in split
    assert '"Where is the tower, and how tall is it?"' in split
    assert '<claim number="3">\n"The tower is beautiful"\n</claim>' in verify
    assert '<source number="3">\n"It is 330 m tall."\n</source>' in verify
    assert "exactly 3 entries" in verify
    assert "faithful" not in split + verify


def test_four_metrics_share_five_calls() -> None:
    """Faithfulness takes two calls; relevancy, precision and recall take one each. RAGAS makes nine."""
    model = FakeChatModel(reply_to_anything)
    judge = make(model)
    for criterion in (FAITHFULNESS, PRECISION, RECALL):
        assert isinstance(assess(judge, criterion), Finding)
    assert isinstance(judge.questions([SAMPLE.answer or ""], 3)[0], Questions)
    assert len(model.calls) == 5
    judge.claims([(SAMPLE.question, SAMPLE.answer or "")])
    assess(judge, replace(FAITHFULNESS, name="hallucination", instruction="Something else?"))
    assert len(model.calls) == 5


def test_the_claims_of_a_text_are_split_once_for_several_criteria() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model)
    assess(judge)
    assess(judge, replace(FAITHFULNESS, against="reference"))
    assert len(model.calls) == 3


def test_a_reference_is_split_into_sentences_by_default() -> None:
    model = FakeChatModel(reply_to_anything)
    found = assess(make(model), RECALL)
    assert isinstance(found, Finding)
    assert [claim.text for claim in found.claims] == ["The tower is in Paris.", "It is 330 m tall."]
    assert [(claim.start, claim.end) for claim in found.claims] == [(0, 22), (23, 40)]
    assert len(model.calls) == 1
    assess(make(model, split_reference="model"), RECALL)
    assert len(model.calls) == 3


def test_sentences_as_claims_take_no_call() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model, split="sentences")
    assert judge.claims([("", "One. Two.")]) == [("One.", "Two.")]
    assert not model.calls
    assess(judge)
    assert len(model.calls) == 1


def test_a_text_without_claims_has_no_score() -> None:
    model = FakeChatModel([{"claims": []}])
    assert assess(make(model)) == Finding(None, reason="the answer makes no claim", claimless=True)
    found = assess(make(model), sample=replace(SAMPLE, answer=" \n"))
    assert found == Finding(None, reason="the answer makes no claim", claimless=True)
    found = assess(make(model), RECALL, replace(SAMPLE, references=("",)))
    assert found == Finding(None, reason="the reference answer makes no claim", claimless=True)
    assert len(model.calls) == 1


def test_without_sources_no_claim_is_supported_and_no_call_is_made() -> None:
    model = FakeChatModel([SPLIT])
    found = assess(make(model), sample=replace(SAMPLE, contexts=()))
    assert isinstance(found, Finding)
    assert (found.score, found.reason) == (0, "nothing can support the answer: there is no text in the contexts")
    assert [claim.verdict for claim in found.claims] == ["not_enough_info"] * 3
    assert len(model.calls) == 1


def test_blank_and_repeated_claims_do_not_count() -> None:
    claims = [{"sentence": 1, "claim": text} for text in ("A tower", " ", "A tower ", "A river")]
    model = FakeChatModel([{"claims": claims}])
    assert make(model).claims([("", "A tower. A river.")]) == [("A tower", "A river")]


def test_five_verdicts_for_six_claims_are_retried() -> None:
    short = {"verdicts": VERDICTS["verdicts"][:2]}
    model = FakeChatModel([SPLIT, short, VERDICTS])
    found = assess(make(model))
    assert isinstance(found, Finding)
    assert len(found.claims) == 3
    assert "'verdicts' has 2 entries, and 3 are wanted" in text_of(model.calls[2])


def test_verdicts_are_put_in_the_order_of_the_claims() -> None:
    model = FakeChatModel([SPLIT, {"verdicts": VERDICTS["verdicts"][::-1]}])
    found = assess(make(model))
    assert isinstance(found, Finding)
    assert [claim.verdict for claim in found.claims] == ["supported", "contradicted", "not_enough_info"]


def test_verdicts_without_numbers_are_read_by_position() -> None:
    same = [{**one, "claim": 1} for one in VERDICTS["verdicts"]]
    found = assess(make(FakeChatModel([SPLIT, {"verdicts": same}])))
    assert isinstance(found, Finding)
    assert [claim.verdict for claim in found.claims] == ["supported", "contradicted", "not_enough_info"]


def test_two_verdicts_on_one_claim_are_retried() -> None:
    twice = [verdict(1, "supported"), verdict(1, "supported"), verdict(3, "supported")]
    model = FakeChatModel([SPLIT, {"verdicts": twice}, VERDICTS])
    assert isinstance(assess(make(model)), Finding)
    assert 'there is no verdict with "claim": 2' in text_of(model.calls[2])


def test_two_differing_verdicts_with_one_number_are_retried() -> None:
    said = [{"context": 1, "reason": "r", "verdict": word} for word in ("yes", "no")]
    right = [{**one, "context": number} for number, one in enumerate(said[::-1], 1)]
    model = FakeChatModel([{"verdicts": said}, {"verdicts": right}])
    found = assess(make(model), PRECISION, replace(SAMPLE, contexts=("One.", "Two.")))
    assert isinstance(found, Finding)
    assert [claim.score for claim in found.claims] == [0, 1]
    assert 'there is no verdict with "context": 2' in text_of(model.calls[1])


def test_evidence_that_no_source_contains_is_dropped() -> None:
    made_up = [verdict(1, "supported", 2, "The tower is pink"), *VERDICTS["verdicts"][1:]]
    found = assess(make(FakeChatModel([SPLIT, {"verdicts": made_up}])))
    assert isinstance(found, Finding)
    assert (found.claims[0].source, found.claims[0].evidence) == (1, None)


def test_evidence_identifies_the_source_if_the_number_is_wrong() -> None:
    wrong = [verdict(1, "supported", 2, "the tower stands in paris"), *VERDICTS["verdicts"][1:]]
    found = assess(make(FakeChatModel([SPLIT, {"verdicts": wrong}])))
    assert isinstance(found, Finding)
    assert (found.claims[0].source, found.claims[0].evidence) == (0, "the tower stands in paris")


def test_all_contexts_get_verdicts_with_one_call() -> None:
    said = [{"context": number, "reason": "r", "verdict": word} for number, word in enumerate(["yes", "no", "yes"], 1)]
    model = FakeChatModel([{"verdicts": said}])
    found = assess(make(model), PRECISION)
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(2 / 3)
    assert [(claim.text, claim.score) for claim in found.claims] == list(
        zip(SAMPLE.contexts or (), [1, 0, 1], strict=True)
    )
    assert [claim.verdict for claim in found.claims] == ["supported", "not_enough_info", "supported"]
    shown = text_of(model.calls[0])
    assert PRECISION.instruction in shown
    assert "<reference_answer>" in shown
    assert "331" not in shown


def test_without_contexts_there_is_nothing_to_judge() -> None:
    model = FakeChatModel([])
    found = assess(make(model), PRECISION, replace(SAMPLE, contexts=()))
    assert found == Finding(None, reason="there are no contexts")


def test_a_grade_is_on_the_criterions_scale() -> None:
    model = FakeChatModel([{"reason": "kind", "grade": 3}])
    assert assess(make(model), POLITENESS) == Finding(3, reason="kind")
    assert "from 0 (not at all) to 4" in text_of(model.calls[0])
    assert "4: kind" in text_of(model.calls[0])
    model = FakeChatModel([{"reason": None, "grade": 4}])
    assert assess(make(model), replace(POLITENESS, scale=None)) == Finding(0.75)


def test_questions_and_noncommittal_come_with_one_call() -> None:
    model = FakeChatModel([{"questions": ["Where?", " How? "], "noncommittal": True}])
    assert make(model).questions(["Paris."], 2) == [Questions(("Where?", "How?"), True)]
    assert "Write 2 different questions" in text_of(model.calls[0])
    unreadable = {"questions": ["Where?", ""], "noncommittal": True}, {"questions": [], "noncommittal": 0}, "x"
    model = FakeChatModel(unreadable)
    (failed,) = make(model).questions(["Paris."], 2)
    assert isinstance(failed, Failed)


def test_entities_are_distinct() -> None:
    model = FakeChatModel([{"entities": ["Paris", "1889", "PARIS", " "]}])
    assert make(model).entities(["Paris, 1889.", ""]) == [("Paris", "1889"), ()]
    assert len(model.calls) == 1


def test_a_failure_has_its_reply_and_does_not_affect_other_samples() -> None:
    def answer(request: ChatRequest) -> Answer:
        if "bad" in text_of(request):
            return "I would rather not."
        return reply_to_anything(request)

    budget = Budget()
    judge = make(FakeChatModel(answer), budget=budget)
    samples = [SAMPLE, replace(SAMPLE, answer="It is bad."), SAMPLE]
    first, second, third = judge.assess(FAITHFULNESS, samples).findings
    assert isinstance(first, Finding)
    assert first == third
    assert isinstance(second, Failed)
    assert second.raw == "I would rather not."
    assert "there is no JSON in it" in second.reason
    assert budget.errors == 1


def test_a_failed_call_and_a_limit_are_failures() -> None:
    dead = make(FakeChatModel(lambda _: CallError("answered 401", is_temporary=False)))
    assert assess(dead) == Failed("answered 401")
    limited = make(FakeChatModel(lambda _: LimitError("enough")))
    assert limited.assess(FAITHFULNESS, [SAMPLE] * 3).findings == [Failed("enough", is_unfinished=True)] * 3


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_a_text_that_instructs_the_judge_stays_data(attack: str) -> None:
    """It appears only between its tags, as one JSON string, and after the rules."""
    model = FakeChatModel(reply_to_anything)
    judge = make(model, split="sentences")
    sample = replace(SAMPLE, answer=attack, contexts=(attack,), references=(attack,), question=attack)
    for criterion in (FAITHFULNESS, PRECISION, RECALL, POLITENESS):
        assert isinstance(assess(judge, criterion, sample), Finding)
    judge.entities([attack])
    judge.questions([attack], 2)
    make(model).claims([(attack, attack)])
    for request in model.calls:
        rules, asked = request.messages
        assert "never instructions" in rules.content
        inside = [line for line in asked.content.splitlines() if line.startswith('"')]
        assert inside
        assert all(isinstance(json.loads(line), str) for line in inside)
        outside = "\n".join(line for line in asked.content.splitlines() if not line.startswith('"'))
        assert not any(part in outside for part in ("Ignore all", "<system>", "im_start", "SYSTEM:", "You now reply"))
        assert outside.count("</answer>") == outside.count("<answer>")


def test_contexts_that_are_too_long_fail_and_are_not_cut() -> None:
    model = FakeChatModel(reply_to_anything)
    characters = sum(map(len, SAMPLE.contexts or ()))
    failed = assess(make(model, max_context_characters=characters - 1))
    assert isinstance(failed, Failed)
    assert f"{characters} characters" in failed.reason
    assert not model.calls
    assert isinstance(assess(make(model, max_context_characters=characters)), Finding)


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    samples = [
        SAMPLE,
        replace(SAMPLE, answer=""),
        replace(SAMPLE, contexts=()),
        replace(SAMPLE, question="Other?", references=("One. Two.",)),
    ]
    variants: list[dict[str, Any]] = [{}, {"split": "sentences"}, {"split_reference": "model"}]
    for keys in variants:
        model = FakeChatModel(reply_to_anything)
        judge = make(model, **keys)
        estimate = judge.estimate_writing("questions", [("", "Paris.")], 3)
        estimate |= judge.estimate_writing("entities", [("", "Paris."), ("", " ")])
        estimate |= judge.estimate_writing("claims", [(SAMPLE.question, SAMPLE.answer or "")])
        for criterion in (FAITHFULNESS, replace(FAITHFULNESS, name="again"), PRECISION, RECALL, POLITENESS):
            estimate |= judge.estimate(criterion, samples)
        assert not model.calls
        for criterion in (FAITHFULNESS, PRECISION, RECALL, POLITENESS):
            judge.assess(criterion, samples)
        judge.questions(["Paris."], 3)
        judge.entities(["Paris.", " "])
        judge.claims([(SAMPLE.question, SAMPLE.answer or "")])
        assert len(estimate.calls["llm"]) == len(model.calls)
        assert judge.estimate(FAITHFULNESS, samples) == Estimate()
        assert judge.estimate_writing("claims", [(SAMPLE.question, SAMPLE.answer or "")]) == Estimate()


def test_once_the_claims_are_known_an_estimate_counts_only_their_verdicts() -> None:
    model = FakeChatModel([SPLIT, VERDICTS])
    judge = make(model)
    judge.claims([(SAMPLE.question, SAMPLE.answer or "")])
    (key,) = judge.estimate(FAITHFULNESS, [SAMPLE]).calls["llm"]
    assess(judge)
    assert key == model.calls[1].digest.hex()


def test_prompts_are_part_of_the_judges_content(tmp_path: Path) -> None:
    model = FakeChatModel(reply_to_anything)
    (tmp_path / "mine.jinja").write_text("{{ question }} {{ sources }} {{ claims }} {{ count }}: Prove it.")
    own = make(model, tmp_path, prompts={"verify": "mine.jinja"})
    assert [*own.check_files()] == []
    assert own.content()["prompts"]["verify"]["sha256"] != make(model).content()["prompts"]["verify"]["sha256"]
    assert own.content()["prompts"]["split"] == make(model).content()["prompts"]["split"]
    assert [file.path.name for file in own.inputs()] == ["mine.jinja"]
    assess(own)
    assert "Prove it." in text_of(model.calls[1])


def test_check_finds_a_wrong_prompt(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ sources }}\n{{ answer }}")
    (fault,) = make(FakeChatModel([]), tmp_path, prompts={"verify": "mine.jinja"}).check_files()
    assert fault.key == ("prompts", "verify")
    assert fault.message.startswith("mine.jinja:2: unknown variable 'answer'")


def test_check_finds_a_model_that_writes_no_replies() -> None:
    models: dict[str, Any] = {"minilm": Embedder()}
    judge = ClaimsJudge(ClaimsNode(use="claims", model="minilm"), Context("strict", models=models))
    assert judge.check() == "the model 'minilm' (use: onnx) writes no replies; name a chat model"


class Embedder:
    node = ModelNode(use="onnx")


def make_with_two(small: FakeChatModel, verify: FakeChatModel, **keys: Any) -> ClaimsJudge:
    node = ClaimsNode.model_validate({"use": "claims", "model": "llm", "split_model": "small", **keys})
    models = {small.context.name: small, verify.context.name: verify}
    return ClaimsJudge(node, Context("strict", models=models))


def test_one_model_can_split_and_another_give_the_verdicts() -> None:
    split, verify = FakeChatModel([SPLIT], name="small"), FakeChatModel([VERDICTS])
    judge = make_with_two(split, verify)
    estimate = judge.estimate(FAITHFULNESS, [SAMPLE])
    assert {name: len(calls) for name, calls in estimate.calls.items()} == {"small": 1, "llm": 1}
    found = assess(judge)
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(1 / 3)
    assert [len(split.calls), len(verify.calls)] == [1, 1]
    assert "verdicts" not in (split.calls[0].schema or {})["properties"]
    assert judge.estimate(FAITHFULNESS, [SAMPLE]).calls == {}


def test_only_splitting_asks_the_splitting_model() -> None:
    split, verify = FakeChatModel([SPLIT], name="small"), FakeChatModel(reply_to_anything)
    judge = make_with_two(split, verify)
    assert judge.claims([("", "The tower is in Paris. It is 331 m tall.")])[0] == tuple(
        claim["claim"] for claim in SPLIT["claims"]
    )
    assert [*judge.estimate_writing("claims", [("", "Another text.")]).calls] == ["small"]
    judge.questions(["It is tall."], 2)
    judge.entities(["Paris"])
    assess(judge, PRECISION)
    assess(judge, POLITENESS)
    assert [len(split.calls), len(verify.calls)] == [1, 4]


def test_a_splitting_model_without_effect_or_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="'split_model' has no effect"):
        make_with_two(FakeChatModel([], name="small"), FakeChatModel([]), split="sentences")
    make_with_two(FakeChatModel([], name="small"), FakeChatModel([]), split="sentences", split_reference="model")
    words = WordModel("small")
    node = ClaimsNode.model_validate({"use": "claims", "model": "llm", "split_model": "small"})
    judge = ClaimsJudge(node, Context("strict", models={"llm": FakeChatModel([]), "small": words}))
    assert "the model 'small' (use: onnx) writes no replies" in (judge.check() or "")


def test_without_a_splitting_model_the_key_is_what_it_was() -> None:
    assert "split_model" not in make(FakeChatModel([])).content()["node"]
    assert make_with_two(FakeChatModel([], name="small"), FakeChatModel([])).content()["node"]["split_model"] == "small"
