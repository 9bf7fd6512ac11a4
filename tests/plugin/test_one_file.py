"""A plugin is one file, its test and the generated schema; no other file mentions it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rageval_spec
from rageval_spec import registry

ROOT = Path(__file__).parents[2]

PLUGINS = {
    "datasets/pair.py": '''
        """`pair`: two questions."""
        import polars as pl
        from pydantic import Field
        from rageval_spec.data.tables import Collection
        from rageval_spec.plugin import Dataset, DatasetNode

        class PairNode(DatasetNode):
            """Two questions."""
            second: str = Field(default="Who?", description="The second question.")

        class Pair(Dataset[PairNode]):
            """Makes up its questions."""
            node_type = PairNode
            def open(self):
                queries = {"query_id": ["q1", "q2"], "text": ["Why?", self.node.second]}
                return Collection(self.context.name, load_queries=lambda: pl.DataFrame(queries))

        PLUGIN = Pair
    ''',
    "systems/parrot.py": '''
        """`parrot`: answers with the question."""
        import polars as pl
        from rageval_spec.data.tables import answers_table
        from rageval_spec.plugin import Answering, System, SystemNode

        class ParrotNode(SystemNode):
            """Answers with the question."""

        class Parrot(System[ParrotNode]):
            """Repeats the question."""
            node_type = ParrotNode
            needs = frozenset({"queries"})
            can_answer = True
            stored = False
            known_as = ("echo",)
            def answer(self, collection):
                rows = collection.require("queries", "parrot").to_dicts()
                return Answering(answers_table([{"query_id": row["query_id"], "answer": row["text"]} for row in rows]))

        PLUGIN = Parrot
    ''',
    "judges/mild.py": '''
        """`mild`: gives everything the best grade."""
        from pydantic import Field
        from rageval_spec.data.findings import Assessment, Finding
        from rageval_spec.plugin import Judge, JudgeNode

        class MildNode(JudgeNode):
            """The best grade for everything."""

        class Mild(Judge[MildNode]):
            """Reads nothing."""
            declared = frozenset({"grade"})
            def assess(self, criterion, samples):
                return Assessment([Finding(criterion.scale[1] if criterion.scale else 1.0) for _ in samples])

        PLUGIN = Mild
    ''',
    "metrics/loudness.py": '''
        """`loudness`: how much of an answer is upper case."""
        from pydantic import Field
        from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricInfo, MetricNode

        class LoudnessNode(MetricNode):
            """How much of an answer is upper case."""
            only: str | None = Field(default=None, description="The letters that count.")

        class Loudness(AnswerMetric[LoudnessNode]):
            """The share of capitals."""
            info = MetricInfo(
                summary="How much of an answer is upper case.",
                formula="loudness = capitals / characters",
                edge_cases=("failure: none",),
                source="this test, 2026",
            )
            def compute(self, samples):
                texts = [sample.answer or "" for sample in samples]
                return Measured([Measurement.scored(sum(map(str.isupper, text)) / len(text)) for text in texts])

        PLUGIN = Loudness
    ''',
    "reports/postcard.py": '''
        """`postcard`: the name and the outcome."""
        from typing import ClassVar
        from rageval_spec.plugin import Report, ReportNode

        class PostcardNode(ReportNode):
            """The name and the outcome, on one line."""

        class Postcard(Report[PostcardNode]):
            """Renders one line."""
            node_type = PostcardNode
            filename: ClassVar[str | None] = "postcard.txt"
            def render(self, evaluation):
                return f"{evaluation.name}: {evaluation.verdict}\\n".encode()

        PLUGIN = Postcard
    ''',
}
SPEC = """
version: 1
name: postcards
datasets: {two: {use: pair, second: WHO?}}
systems: {bird: {use: parrot}}
judges: {kind: {use: mild}}
metrics:
  - loudness
  - {use: loudness, only: AEIOU}
  - {use: rubric, judge: kind, criteria: Is it kind?}
gates: [{metric: loudness, min: 0.2}]
reports: [postcard]
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more file in each of five sections, which are real folders; all other files are links.

    What is compiled already is not compiled again for each of the processes that use it.
    """
    folder = tmp_path_factory.mktemp("installation")
    source, package = Path(str(rageval_spec.__file__)).parent, folder / "rageval_spec"
    package.mkdir()
    for entry in source.iterdir():
        target = package / entry.name
        if entry.name in registry.SECTIONS:
            target.mkdir()
            for file in entry.iterdir():
                if file.name == "__pycache__":
                    shutil.copytree(file, target / file.name)
                else:
                    (target / file.name).symlink_to(file)
        elif entry.name != "__pycache__":
            target.symlink_to(entry)
    for name, text in PLUGINS.items():
        lines = [line.removeprefix("        ") for line in text.strip("\n").splitlines()]
        (package / name).write_text("\n".join(lines) + "\n")
    (folder / "spec.yaml").write_text(SPEC)
    return folder


def execute(installation: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (installation, ROOT)))
    command = [sys.executable, "-P", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=installation, env=environment, capture_output=True, text=True, timeout=300)


def command(installation: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return execute(installation, "-m", "rageval_spec", *arguments)


def test_a_spec_with_only_new_plugins_runs(installation: Path) -> None:
    done = command(installation, "validate", "spec.yaml")
    assert done.returncode == 0, done.stderr
    done = command(installation, "run", "spec.yaml", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert (installation / "out" / "postcard.txt").read_text() == "postcards: pass\n"


def test_new_plugins_are_listed_shown_and_suggested(installation: Path) -> None:
    script = f"""
import json
from rageval_spec.commands.plugin_words import describe_plugin, list_plugins
from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads
from rageval_spec.spec.json_schema import build_schema
shown = {{section: list_plugins(section) + describe_plugin(section, word)
    for section, word in (("datasets", "pair"), ("systems", "parrot"), ("judges", "mild"), ("reports", "postcard"),
        ("metrics", "loudness"))}}
try:
    loads({SPEC!r}.replace("use: parrot", "use: echo"), check_files=False)
except SpecError as error:
    shown["hint"] = error.diagnostics[0].hint
shown["schema"] = sorted(build_schema()["definitions"])
print(json.dumps(shown))
"""
    done = execute(installation, "-c", script)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    for section, word in (name.removesuffix(".py").split("/") for name in PLUGINS):
        assert f"\n{word} " in shown[section] and f"\n{word}: " in shown[section]
        assert f"{section}.{word}" in shown["schema"]
    assert '- second: The second question. (default "Who?")' in shown["datasets"]
    assert "- grade a sample as a whole" in shown["judges"]
    assert shown["hint"] == "did you mean 'parrot'?"


def test_the_tests_that_hold_for_every_plugin_hold_for_new_ones(installation: Path) -> None:
    tests = ["test_registry.py", "commands/test_plugin_words.py", "metrics/test_answer_words.py"]
    paths = [str(ROOT / "tests" / test) for test in tests]
    done = execute(installation, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *paths)
    assert done.returncode == 0, done.stdout
    assert f"{installation}" not in done.stdout


def read_recipe() -> str:
    """The metric that CONTRIBUTING.md prints."""
    found = re.search(r"^ *```python\n(.*?)^ *```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return textwrap.dedent(found[1])


@pytest.fixture
def runs(installation: Path) -> Path:
    """A spec for a run of the samples, and two more metrics: the recipe, and the recipe with a wrong status."""
    metrics, recipe = installation / "rageval_spec" / "metrics", read_recipe()
    (metrics / "first_score.py").write_text(recipe)
    (metrics / "okay_score.py").write_text(recipe.replace('pl.lit("scored")', 'pl.lit("okay")'))
    shutil.copytree(ROOT / "specs" / "data", installation / "data", dirs_exist_ok=True)
    (installation / "runs.yaml").write_text("""
version: 1
name: runs
datasets: {support: {use: trec, qrels: data/support/qrels/test.tsv}}
systems: {keyword: {use: file, path: data/support/runs/keyword.run}}
metrics: [first_score, ndcg@10]
""")
    return installation


def test_the_recipe_for_a_metric_runs_as_printed(runs: Path) -> None:
    done = command(runs, "run", "runs.yaml", "-o", "recipe")
    assert done.returncode == 0, done.stderr
    assert re.search(r"first_score +0\.211 \[0\.188, 0\.239\] +40/40", done.stdout)
    explained = command(runs, "explain", "first_score")
    assert "first_score = score of the document at rank 1" in explained.stdout


def test_an_unknown_status_of_a_metric_is_reported_on_the_terminal(runs: Path) -> None:
    done = command(runs, "run", "runs.yaml", "-o", "slip", "--set", "metrics=[okay_score, ndcg@10]")
    assert done.returncode == 3, done.stdout
    reason = "the metric returned the unknown status 'okay'; the statuses are scored, unscorable and error"
    told = f"okay_score of keyword on support: 40 of 40 queries failed; the first: {reason}"
    assert told in " ".join(done.stdout.split())
