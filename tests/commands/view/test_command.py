import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rageval_spec.commands.view.command import find_catalog
from tests.command_line import invoke, start
from tests.local_view.viewing import make_project, viewing


@contextmanager
def started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and the address that it printed."""
    program = start("view", *arguments, "--no-open")
    try:
        assert program.stderr is not None
        line = program.stderr.readline()
        assert "Ctrl-C ends this" in line, line + program.stderr.read()
        yield program, line.partition(" is at ")[2].partition(";")[0]
    finally:
        program.kill()
        program.communicate()


def test_it_serves_this_machine_until_ctrl_c(tmp_path: Path) -> None:
    make_project(tmp_path)
    with started(tmp_path) as (program, address):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=10) as reply:
            cookie = reply.headers["set-cookie"].partition(";")[0]
        page = urllib.request.Request(address.partition("?")[0], headers={"cookie": cookie})
        assert b"numbers only" in urllib.request.urlopen(page, timeout=10).read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0], timeout=10)
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=10) == 130


def test_the_monitor_page_is_that_of_the_spec(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text('{"id": "t", "question": "q", "answer": "a", "contexts": ["c"]}\n')
    spec = tmp_path / "spec.yaml"
    systems, metrics = "{live: {use: file, path: traces.jsonl, follow: true}}", "[{use: faithfulness, judge: overlap}]"
    spec.write_text(f"version: 1\nname: bot\nsystems: {systems}\nmetrics: {metrics}\nmonitor: {{}}\n")
    with viewing(tmp_path) as client:
        assert "Start the view with a spec" in client.get("/monitor")[1]
        assert 'href="/monitor"' not in client.get("/")[1]
    with viewing(tmp_path, spec=spec) as client:
        status, page = client.get("/monitor")
        assert 'href="/monitor"' in client.get("/")[1]
    assert status == 200, page
    assert '<nav class="places"' in page


@pytest.mark.parametrize("given", ["nothing", "spec.txt"])
def test_what_has_no_records_is_refused(tmp_path: Path, given: str) -> None:
    (tmp_path / "spec.txt").write_text("x")
    done = invoke("view", tmp_path / given, "--no-open")
    assert done.exit_code == 2
    assert "is not a folder, a spec or a results folder" in done.stderr


def test_without_the_server_the_line_to_install_it_is_printed(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from rageval_spec.cli import main; main()"
    command = [sys.executable, "-c", code, "view", str(tmp_path), "--no-open"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 2
    assert "pip install 'rageval-spec[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("scale", "told"), [("5..1", "must have 2 to"), ("good", "is not a scale"), ("claims", "review select")]
)
def test_a_scale_that_cannot_be_labelled_is_refused(tmp_path: Path, scale: str, told: str) -> None:
    done = invoke("view", tmp_path, "--scale", scale, "--no-open")
    assert done.exit_code == 2
    assert told in done.stderr


def test_the_only_spec_of_the_folder_is_the_one_to_judge_by(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert find_catalog(str(tmp_path))[1:] == (tmp_path, None)
    (tmp_path / "compose.yaml").write_text("version: 1\nservices: {}\n")
    (tmp_path / "spec.yml").write_text("version: 1\ndatasets: {}\nmetrics: []\n")
    assert find_catalog(str(tmp_path))[2] == tmp_path / "spec.yml"
    (tmp_path / "other.yaml").write_text("version: 1\ndatasets: {}\nmetrics: []\n")
    assert find_catalog(str(tmp_path))[2] is None
