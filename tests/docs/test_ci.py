"""Every example of docs/ci.md is parsed by the program that reads it, or by its published schema."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from rageval_spec.cli import cli
from tests.tiny import write_spec

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.defpath, os.environ.get("PATH", "")])


def read_file(name: str) -> str:
    """The example whose first line is a comment with the name of its file."""
    return next(str(body) for _, body in BLOCKS if re.match(rf"(#|//) {re.escape(name)}\n", body))


def find_program(name: str) -> str:
    found = shutil.which(name, path=PROGRAMS)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def check(command: Sequence[str | Path], **options: Any) -> None:
    found = subprocess.run(command, capture_output=True, text=True, **options)
    assert found.returncode == 0, found.stdout + found.stderr


WORKFLOWS = pytest.mark.parametrize(
    "name", [f".github/workflows/{name}.yml" for name in ("evaluate", "nightly", "shards")]
)


@WORKFLOWS
def test_workflows_keep_to_githubs_schema(name: str, tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text(read_file(name))
    check([find_program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", path])


@WORKFLOWS
def test_workflows_are_right_in_the_eyes_of_actionlint(name: str, tmp_path: Path) -> None:
    """In a repository with the action, it also looks at inputs and outputs."""
    (tmp_path / ".git").mkdir()
    shutil.copy(ROOT / "action.yml", tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(re.sub(r"your-org/rageval-spec@v[\d.]+", "./", read_file(name)))
    check([find_program("actionlint"), "-shellcheck=", "-pyflakes=", path], cwd=tmp_path)


@WORKFLOWS
def test_the_inputs_of_the_action_are_there(name: str) -> None:
    jobs = yaml.safe_load(read_file(name))["jobs"].values()
    steps = [step for job in jobs for step in job["steps"] if "rageval-spec@" in step.get("uses", "")]
    assert steps
    for step in steps:
        assert {*step["with"]} <= {*ACTION["inputs"]}
        required = {input for input, one in ACTION["inputs"].items() if one.get("required")}
        assert required <= {*step["with"]}
        for argument in step["with"].get("arguments", "").splitlines():
            parse(["run", "spec.yaml", argument])


@pytest.mark.parametrize("name", [".gitlab-ci.yml", ".gitlab/shards.yml"])
def test_the_pipeline_keeps_to_gitlabs_schema(tmp_path: Path, name: str) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(read_file(name))
    check([find_program("check-jsonschema"), "--builtin-schema", "vendor.gitlab-ci", path])


def test_the_scripts_of_gitlab_are_shell_and_its_reports_are_written(tmp_path: Path) -> None:
    job = yaml.safe_load(read_file(".gitlab-ci.yml"))["evaluate"]
    check(["bash", "-n", "-c", "\n".join([*job["before_script"], *job["script"]])])
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1}])
    words = re.findall(r"'(reports=\[.*?\])'", job["script"][0])
    run: list[str | Path] = [
        sys.executable,
        "-m",
        "rageval_spec",
        "run",
        path,
        "-q",
        "-o",
        tmp_path / "rageval-results",
    ]
    check([*run, "--set", words[0]])
    assert all((tmp_path / file).is_file() for file in job["artifacts"]["reports"].values())


def test_the_shards_of_gitlab_are_put_together(tmp_path: Path) -> None:
    jobs = yaml.safe_load(read_file(".gitlab/shards.yml"))
    write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1}])
    (tmp_path / "evals").mkdir()
    for name in ("data", "spec.yaml"):
        (tmp_path / name).rename(tmp_path / "evals" / name.replace("spec", "support"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "rageval-spec").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rageval_spec "$@"\n')
    (programs / "rageval-spec").chmod(0o755)
    known = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CI_NODE_TOTAL": "4"}
    for number in range(jobs["shard"]["parallel"]):
        command = ["bash", "-ec", "\n".join(jobs["shard"]["script"])]
        check(command, cwd=tmp_path, env={**known, "CI_NODE_INDEX": str(number + 1)})
    check(["bash", "-ec", "\n".join(jobs["merge"]["script"])], cwd=tmp_path, env=known)
    assert (tmp_path / jobs["merge"]["artifacts"]["reports"]["junit"]).is_file()


def test_the_jenkinsfile_has_balanced_braces_and_known_steps() -> None:
    text = read_file("Jenkinsfile")
    bare = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "''", text)
    for opening, closing in ("{}", "()", "[]"):
        assert bare.count(opening) == bare.count(closing)
    assert re.findall(r"^\s{4}(\w+)", bare, re.MULTILINE)[:3] == ["agent", "environment", "stages"]
    assert all(one in bare for one in ("pipeline {", "post {", "always {", "junit ''", "archiveArtifacts artifacts:"))


def test_the_hook_is_one_that_pre_commit_can_run(tmp_path: Path) -> None:
    (repository,) = yaml.safe_load(read_file(".pre-commit-config.yaml"))["repos"]
    (hook,) = repository["hooks"]
    assert {"id", "name", "language", "entry", "files"} <= {*hook}
    pattern = re.compile(hook["files"])
    assert pattern.search("evals/support.yaml")
    assert not pattern.search("docs/a.yaml")
    good, wrong = write_spec(tmp_path, "good.yaml"), write_spec(tmp_path, "wrong.yaml", metrics=["ncdg@10"])
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    check([*shlex.split(hook["entry"]), good, good], env=environment)
    found = subprocess.run([*shlex.split(hook["entry"]), good, wrong], env=environment, capture_output=True, text=True)
    assert found.returncode == 2
    assert "did you mean 'ndcg@10'?" in found.stderr


def parse(arguments: Sequence[str]) -> None:
    """Parse a command line without running it."""
    context = click.Context(cli)
    command = cli.resolve_command(context, [arguments[0]])[1]
    assert command is not None, arguments
    command.make_context(arguments[0], [*arguments[1:]], parent=context)


def test_every_command_has_options_that_exist() -> None:
    lines = re.findall(
        r"rageval-spec ((?:run|merge|comment|validate)\b[^\n\"`]*)", "\n".join(body for _, body in BLOCKS)
    )
    commands = [re.split(r" \|\||;| do |\"$", line)[0] for line in lines]
    assert len(commands) >= 5
    for line in commands:
        words = [word for word in shlex.split(line) if word != "--"]
        parse(words if len(words) > 1 else [*words, "spec.yaml"])


def test_the_reports_of_the_examples_exist(tmp_path: Path) -> None:
    (section,) = (body for kind, body in BLOCKS if kind == "yaml" and body.startswith("reports:"))
    path = write_spec(tmp_path, **yaml.safe_load(section))
    check([sys.executable, "-m", "rageval_spec", "run", path, "-q", "-o", tmp_path / "out"])
    assert (tmp_path / "out" / "support.prom").is_file()


def test_the_rule_is_one_of_prometheus_and_names_a_metric_of_the_report(tmp_path: Path) -> None:
    (rules,) = (body for kind, body in BLOCKS if kind == "yaml" and body.startswith("groups:"))
    assert "rageval_gate_outcome{" in rules
    assert "rageval_gate_outcome" in (ROOT / "tests" / "golden" / "reports" / "metrics.txt").read_text()
    path = tmp_path / "rules.yml"
    path.write_text(rules)
    check([find_program("promtool"), "check", "rules", path])


def test_the_examples_for_pytest_are_read_by_pytest(tmp_path: Path) -> None:
    (settings,) = (body for kind, body in BLOCKS if kind == "toml")
    assert {*tomllib.loads(settings)["tool"]["pytest"]["ini_options"]} == {"rageval_specs"}
    (code,) = (body for kind, body in BLOCKS if kind == "python")
    called = {node.attr for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}
    from rageval_spec.testing.fixture import Rageval

    assert called == {"run", "assert_passes", "assert_no_regression"} == {n for n in vars(Rageval) if n[0] != "_"}


def test_the_versions_are_this_one() -> None:
    from rageval_spec import __version__

    assert {*re.findall(r"rageval-spec(?:==|@v)([\d.]+\d)", TEXT)} == {__version__}
