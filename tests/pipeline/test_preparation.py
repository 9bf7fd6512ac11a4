import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.runner import Options, plan, run
from tests.generation.conftest import workshop as workshop
from tests.generation.writing import Workshop

OPTIONS = Options(output=None, no_history=True)


def test_questions_are_made_before_the_plan_and_only_once(workshop: Workshop) -> None:
    spec = workshop.write_spec()
    before = plan(spec)
    assert [(calls.model, calls.calls) for calls in before.expectation.models] == [("gpt", 30)]
    assert not workshop.writer.bodies
    first = run(spec, OPTIONS)
    assert [one.scored for one in first.evaluation.aggregates] == [10]
    assert len(workshop.writer.bodies) == 30
    again = run(spec, OPTIONS)
    assert again.evaluation.aggregates == first.evaluation.aggregates
    assert len(workshop.writer.bodies) == 30
    after = plan(spec)
    assert "no calls" in after.expectation.render()
    assert after.plan.of("open")[0].key != before.plan.of("open")[0].key
    assert "in the store" in after.render()


def test_a_limit_stops_the_evaluation_and_the_next_run_goes_on(workshop: Workshop) -> None:
    with pytest.raises(RagevalError, match=r"datasets.golden: .*max_calls.*; run again to continue"):
        run(workshop.write_spec(limits="max_calls: 17"), OPTIONS)
    assert run(workshop.write_spec(), OPTIONS).exit_code == 0
    assert len(workshop.writer.bodies) == 30


def test_without_a_store_the_questions_are_made_each_time(workshop: Workshop) -> None:
    options = Options(output=None, no_history=True, no_store=True)
    assert run(workshop.write_spec("count: 2"), options).exit_code == 0
    assert run(workshop.write_spec("count: 2"), options).exit_code == 0
    assert len(workshop.writer.bodies) == 12


def test_a_corpus_that_gives_too_few_is_said_in_the_results(workshop: Workshop) -> None:
    outcome = run(workshop.write_spec("count: 50, per_chunk: 1"), OPTIONS)
    assert outcome.exit_code == 0
    assert "30 questions are missing: no chunk is left to ask about" in outcome.evaluation.notes[0].message


def test_when_nothing_can_be_made_the_evaluation_breaks(workshop: Workshop) -> None:
    workshop.writer.draft = lambda asked: "no"  # type: ignore[method-assign]
    with pytest.raises(RagevalError, match="no question could be made: 2 questions: none passed the checks in 4"):
        run(workshop.write_spec("count: 2"), OPTIONS)
