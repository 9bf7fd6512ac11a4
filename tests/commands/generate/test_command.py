from rageval_spec.commands.generate.command import Planned
from rageval_spec.data.assessment import Tokens
from rageval_spec.pipeline.estimate import Expectation, ModelCalls


def plan(calls: int, cost: float | None, most: float | None = None) -> list[str]:
    return Planned(3, 1200, Expectation((ModelCalls("gpt", calls, Tokens(10, 20), cost),)), most).list_lines()


def test_the_plan_says_what_it_costs_and_whether_that_is_allowed() -> None:
    assert plan(5, 0.25)[0] == "3 documents, 1,200 chunks"
    assert "about 0.25 USD" in plan(5, 0.25)[2]
    assert plan(5, 0.25)[-1] == "each question that fails a check is replaced, which costs about as much again"
    assert plan(5, 0.25, 0.1)[-1] == "this is more than 0.1 USD: it will stop there, and another run continues"
    assert plan(0, 0.0)[-1].endswith("no calls")
