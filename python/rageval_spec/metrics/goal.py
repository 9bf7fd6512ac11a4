from rageval_spec.data.findings import Criterion
from rageval_spec.metrics.shared.judged_metrics import JudgedMetric, JudgeMetricNode
from rageval_spec.plugin import MetricInfo

REACHED = Criterion(
    "goal",
    "grade",
    "How far did the agent reach what the user wanted? Judge by what the steps and their results show, not by what the "
    "answer says was done. A goal or a reference answer, if there is one, says how it ends well.",
    against="question",
    shown=("question", "goal", "reference", "steps", "answer"),
)


class Goal(JudgedMetric[JudgeMetricNode]):
    able = (frozenset({"grade"}),)
    asked = (REACHED,)
    needs = frozenset({"answer", "steps"})
    known_as = ("goal_accuracy", "agent_goal_accuracy", "task_completion", "task_success")
    info = MetricInfo(
        summary="Whether an agent reached the user's goal, by what it did and what came of it.",
        formula="goal = the judge's grade in [0, 1] of the question, the steps and the answer",
        edge_cases=(
            "golden set with a column `goal`, or references: the judge sees them, too",
            "no steps recorded: no value; an empty list of steps: graded, because a goal may need no tool",
        ),
        source="RAGAS documentation, agent goal accuracy (2024; there 0 or 1); DeepEval documentation, task completion",
    )


PLUGIN = Goal
