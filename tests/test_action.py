"""action.yml is valid, and its steps do what they say: they run here as GitHub's runner would run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

import rageval_spec
from tests.command_line import invoke
from tests.commands.comment.server import TOKEN, CodeHostServer, serve
from tests.tiny import write_spec

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
WORSE = "q1 Q0 d6 1 0.9 t\nq2 Q0 d1 1 0.7 t\n"
DROP = {"metric": "rr", "system": "good", "baseline": "main", "max_drop": 0.02}


def test_it_keeps_to_the_published_schema() -> None:
    check = shutil.which("check-jsonschema", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    if check is None:
        pytest.skip("check-jsonschema is not installed")
    command = [check, "--builtin-schema", "vendor.github-actions", str(ROOT / "action.yml")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_version_is_this_one() -> None:
    assert ACTION["inputs"]["version"]["default"] == rageval_spec.__version__


def test_other_actions_are_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", one) for one in used)


def test_inputs_reach_scripts_only_as_variables() -> None:
    """An expression inside a script would let a branch's name run as code."""
    assert not any("${{" in step.get("run", "") for step in STEPS)


def test_every_expression_names_something_that_is_there() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert {*re.findall(r"inputs\.([\w-]+)", text)} == {*ACTION["inputs"]}
    assert {*re.findall(r"steps\.([\w-]+)", text)} <= {step["id"] for step in STEPS if "id" in step}


@dataclass
class Job:
    """A job of pull request 7 of `owner/app`, with a checkout in `folder`.

    Attributes:
        outputs: what the steps gave, by their id.
        log: what they printed.
    """

    folder: Path
    server: CodeHostServer
    fork: bool = False
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    def run(self, **inputs: str) -> int:
        """Run the scripts of the action, without the installation and without other actions; return the exit code."""
        self.log, self.outputs = "", {}
        known = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
        known |= {"token": TOKEN, **{name.replace("_", "-"): text for name, text in inputs.items()}}
        code = 0
        for step in STEPS:
            if "run" not in step or step["name"].startswith("Install") or not self._applies(step, known):
                continue
            code = self._start(step, known)
            if code:
                break
        return code

    def save_baseline(self) -> None:
        """What a run of the action on the main branch leaves; `test_from_the_baseline_to_the_comment` runs it."""
        spec = self.folder / "evals" / "spec.yaml"
        ended = invoke("run", spec, "-o", self.folder / "before", "--save-as=main", "--set=gates=[]")
        assert ended.exit_code == 0, ended.stderr

    def _applies(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> bool:
        found = re.fullmatch(r"\$\{\{ (\S+) != '(.*)' \}\}", step.get("if", ""))
        return found is None or self._fill(f"${{{{ {found[1]} }}}}", inputs) != found[2]

    def _start(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> int:
        output = self.folder / "github_output"
        output.write_text("")
        more = {name: self._fill(text, inputs) for name, text in step.get("env", {}).items()}
        assert step["shell"] == "bash"
        found = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder / self._fill(step.get("working-directory", "."), inputs),
            env={**self._environment(output), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.log += found.stdout
        pairs = (line.partition("=") for line in output.read_text().splitlines())
        self.outputs[step.get("id", "")] = {name: text for name, _, text in pairs}
        return found.returncode

    def _fill(self, text: str, inputs: Mapping[str, str]) -> str:
        def find(match: re.Match[str]) -> str:
            kind, *names = match[1].split(".")
            return inputs[names[0]] if kind == "inputs" else self.outputs.get(names[0], {}).get(names[2], "")

        return re.sub(r"\$\{\{ (\S+) \}\}", find, text)

    def _environment(self, output: Path) -> dict[str, str]:
        event = self.folder / "event.json"
        head = {"repo": {"full_name": "eve/app" if self.fork else "owner/app"}}
        request = {"number": 7, "head": head, "base": {"repo": {"full_name": "owner/app"}}}
        event.write_text(json.dumps({"pull_request": request}))
        kept = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
        return {
            **kept,
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/app",
            "GITHUB_API_URL": self.server.url,
            "GITHUB_EVENT_PATH": str(event),
        }


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    programs = tmp_path / "temp" / "rageval-spec" / "bin"
    programs.mkdir(parents=True)
    for name, arguments in (("python", ""), ("rageval-spec", "-m rageval_spec")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "evals").mkdir()
    write_spec(tmp_path / "evals", gates=[DROP], reports=["terminal"])
    with serve() as server:
        yield Job(tmp_path, server)


def test_from_the_baseline_to_the_comment(job: Job) -> None:
    assert job.run(spec="spec.yaml", working_directory="evals", arguments="--save-as=main\n--set=gates=[]") == 0
    assert job.outputs["run"] == {"code": "0", "outcome": "pass"}
    (job.folder / "evals" / "data" / "good.run").write_text(WORSE)
    code = job.run(spec="spec.yaml", working_directory="evals", baseline="main")
    assert code == 1
    assert job.outputs["run"] == {"code": "1", "outcome": "fail"}
    assert job.outputs["place"]["results"] == str(job.folder / "evals" / "rageval-results")
    assert job.outputs["place"]["kept"] == str(job.folder / "evals" / ".rageval")
    assert (job.folder / "evals" / "rageval-results" / "results.json").is_file()
    assert job.outputs["comment"] == {"url": "https://code.example/7#100"}
    assert len(job.server.comments) == 1
    assert "| ❌ `rr` · `good` drop from main" in job.server.comments[0]["body"]
    assert "**Not ready**: " in (job.folder / "summary.md").read_text()
    assert re.search(r"(?m)^::error file=\S*spec\.yaml,line=\d+,title=rr ", job.log)
    assert TOKEN not in job.log


def test_the_baseline_is_found_beside_a_spec_in_another_folder(job: Job) -> None:
    job.save_baseline()
    (job.folder / "evals" / "data" / "good.run").write_text(WORSE)
    assert job.run(spec="evals/spec.yaml", baseline="main") == 1
    assert "Base: `main`." in job.server.comments[0]["body"]


def test_before_there_is_a_baseline_the_comment_has_none(job: Job) -> None:
    assert job.run(spec="evals/spec.yaml", arguments="--set=gates=[]", baseline="main") == 0
    assert len(job.server.comments) == 1
    assert (job.folder / "summary.md").read_text().count("<!-- rageval-spec: tiny -->") == 1


def test_a_fork_gets_a_summary_and_no_comment(job: Job) -> None:
    job.fork = True
    assert job.run(spec="evals/spec.yaml", arguments="--set=gates=[]") == 0
    assert job.outputs["comment"] == {"url": ""}
    assert "**Complete**: " in (job.folder / "summary.md").read_text()
    assert job.server.asked == []


def test_a_comment_that_is_refused_does_not_change_the_outcome(job: Job) -> None:
    job.server.refusals = {"GET": [(403, {})] * 9}
    assert job.run(spec="evals/spec.yaml", arguments="--set=gates=[]") == 0
    assert job.outputs["run"]["outcome"] == "pass"
    assert "::warning title=rageval-spec::The comment could not be made" in job.log


def test_comments_can_be_switched_off(job: Job) -> None:
    assert job.run(spec="evals/spec.yaml", arguments="--set=gates=[]", comment="false") == 0
    assert job.server.asked == []
    assert (job.folder / "summary.md").is_file()


def test_a_wrong_spec_is_an_error_with_exit_code_2(job: Job) -> None:
    assert job.run(spec="evals/spec.yaml", arguments="--set=metrics=[ncdg@10]\n--set=gates=[]") == 2
    assert job.outputs["run"] == {"code": "2", "outcome": "error"}
    assert job.server.asked == []


def test_shards_are_put_together_and_only_the_whole_is_commented_on(job: Job) -> None:
    job.save_baseline()
    for number in (1, 2):
        shard = f"{number}/2"
        assert job.run(spec="spec.yaml", working_directory="evals", shard=shard, output="../shards") == 0, job.log
        assert job.outputs["place"]["part"] == f"-shard-{number}-of-2"
        assert job.outputs["run"]["outcome"] == ""
        assert "url" not in job.outputs["comment"]
    assert job.run(spec="spec.yaml", working_directory="evals", merge="../shards") == 0, job.log
    assert job.outputs["run"]["outcome"] == "pass"
    assert job.outputs["comment"]["url"]
