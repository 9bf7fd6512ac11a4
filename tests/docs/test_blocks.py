"""docs/check_blocks.py executes blocks, and tells of a block that it cannot execute where it is and what to write."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))

import check_blocks  # noqa: E402


def check(folder: Path, text: str, *, update: bool = False) -> check_blocks.Walked:
    """Walk through a page with this text."""
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    (folder / "walk").mkdir(exist_ok=True)
    return check_blocks.Walk(page, folder / "walk", update=update).check_all()


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("```\nsome words\n```", "write <!-- not run: REASON --> above it"),
        ("```console\n$ rageval-spec run spec.yaml --limt 3\n```", "--limt"),
        ("```console\n$ rageval-spec explain metrics.python | grep -c x > /dev/nul/x\n```", "exit code: 1"),
        ("```console\n$ rageval-spec run \\\n --limt 3\n```", "--limt"),
        ("```yaml\nversion: 1", "a fence that nothing closes"),
        ("```console\n$ echo two\none\n```", "is something else (--update writes it)"),
        ("```console\n$ rageval-spec validate none.yaml\n```", "show it by a line '$ echo $?'"),
        ("<!-- output of: echo two -->\n```text\none\n```", "has no such part"),
        ("```yaml\nmetrics: [ncdg@10]\n```", "did you mean 'ndcg@10'?"),
        ("```yaml\n- {metric: ndcg@10, min: 1}\n```", "write <!-- part of: KEY --> above it"),
        ("<!-- part of: gates -->\n```yaml\n- {metric: ndcg@10, mni: 1}\n```", "did you mean 'min'?"),
        ("```python\nprint(1\n```", "ruff failed"),
        ("```python\nprint(1 / 0)\n```", "ZeroDivisionError"),
        ("```json\n{,}\n```", "it is not json"),
        ("```csv\na,b\n1\n```", "do not all have 2 columns"),
        ("<!-- given: nothing -->\n```sh\nls\n```", "no setting is called 'nothing'; they are"),
        ("<!-- checked by: tests/docs/test_show.py -->\n```groovy\nx\n```", "does not read elsewhere.md"),
        ("<!-- checked by: tests/docs/test_show.py::test_no -->\n```groovy\nx\n```", "has no test test_no"),
        ("<!-- checked by: docs/block_settings.py -->\n```groovy\nx\n```", "has no test"),
        ("<!-- not run: -->\n```groovy\nx\n```", "nothing executes"),
        ("<!-- not run:   -->\n```groovy\nx\n```", "the comment 'not run' is empty"),
        ("<!-- checked by -->\n```groovy\nx\n```", "the comment 'checked by' is empty"),
        ("> ```console\n> $ false\n> ```", "this block is not seen"),
        ("- a\n\n\t```console\n\t$ false\n\t```", "this block is not seen"),
        ("<pre>\nfalse\n</pre>", "write a fence in place of <pre>"),
        ("    false", "this block is only indented"),
        ('```python title="never.py"\nx = 1\n```', "no command uses never.py"),
        ('```yaml title="never.yaml"\nx: 1\n```', "no command uses never.yaml"),
        ("```console\nnobody prints this\n$ true\n```", "which stands above the first '$ '"),
        ("<!-- exit code: 2 -->\n```console\n$ true\n```", "no command ended with exit code 2"),
        ("<!-- output of: echo one; exit 3 -->\n```text\none\n```", "write <!-- exit code: 3 -->"),
        ("```console\n$ false\n$ echo $?\n```", "shows no exit code"),
    ],
)
def test_a_fault_names_its_line_and_the_remedy(tmp_path: Path, block: str, told: str) -> None:
    page = tmp_path / "elsewhere.md"
    page.write_text(f"# A page\n\n{block}\n", encoding="utf-8")
    (tmp_path / "walk").mkdir()
    (fault,) = check_blocks.Walk(page, tmp_path / "walk", update=False).check_all().faults
    assert re.match(rf"{re.escape(str(page))}:[3-5]: ", fault)
    assert told in fault


def test_a_page_is_walked_in_order_from_an_empty_folder(tmp_path: Path) -> None:
    walked = check(
        tmp_path,
        """\
```jsonl title="rows/answers.jsonl"
{"question": "why?", "answer": "so"}
```

```console
$ ls
rows
$ cd rows
$ cat answers.jsonl | wc -l
1
$ false
$ echo $?
1
```

<!-- not run: needs a chat model -->
```sh
rageval-spec run spec.yaml
```

```python
text = "two"
```

```python
print(text)
#> two
```
""",
    )
    assert walked.faults == []
    assert walked.done == {"files of commands": 1, "commands": 1, "not run": 1, "Python": 2}
    assert walked.reasons == {"needs a chat model": 1}


def test_commands_that_are_not_run_are_parsed_all_the_same(tmp_path: Path) -> None:
    walked = check(tmp_path, "<!-- not run: needs a key -->\n```sh\nexport A=b; rageval-spec plan --no x.yaml\n```\n")
    assert "No such option" in walked.faults[0]


def test_update_writes_what_commands_print_and_keeps_what_is_left_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("1. Count:\n\n   ```console\n   $ seq 5\n   0\n   ...\n   0\n   $ echo so\n   so\n   ```\n")
    check_blocks.walk(page, True, tmp_path)
    assert (
        page.read_text() == "1. Count:\n\n   ```console\n   $ seq 5\n   1\n   ...\n   5\n   $ echo so\n   so\n   ```\n"
    )


def test_update_of_a_part_writes_the_lines_that_are_likest(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = "printf 'one\\nuno dos\\ntres cuatro [n]\\nend\\n'"
    page.write_text(f"<!-- output of: {command} -->\n```text\nuno dos\ntres cuatro\n```\n")
    check_blocks.walk(page, True, tmp_path)
    assert page.read_text().splitlines()[2:4] == ["uno dos", "tres cuatro [n]"]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("took 0.3 s, 12 MB", "took 1.25 s, 9.1 MB"),
        ("asked 2026-03-01 10:42 UTC", "asked 2026-11-28 21:05 UTC"),
        ("3f2a91c0  pass", "97b0e6d2  pass"),
        ("3f2a91c0  pass", "97306162  pass"),
        ("took 900 ms", "took 1.1 s"),
        ("took 0.0 s", "took 0.3 s"),
        ("read 2 h ago", "read 2 min ago"),
        ("a    b\n──────", "a  b\n────"),
        ("a\n...\nd", "a\nb\nc\nd"),
    ],
)
def test_what_differs_from_run_to_run_is_alike(shown: str, printed: str) -> None:
    assert check_blocks.matches(shown.splitlines(), printed.splitlines())


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.667", "0.668"),
        ("a\n...\nd", "a\nb\nc"),
        ("a\n...\na", "a"),
        ("...\nb", "b\na"),
        ("q07", "q08"),
        ("1 ms", "1 s"),
        ("12 KB", "12 MB"),
        ("3 s", "3 MB"),
        ("1 s", "1 h"),
        ("12345678", "12345679"),
        ("HASH", "3f2a91c0"),
    ],
)
def test_what_differs_for_a_reason_is_not(shown: str, printed: str) -> None:
    assert not check_blocks.matches(shown.splitlines(), printed.splitlines())


def test_a_spec_on_a_page_with_its_own_environment_is_loaded_there(tmp_path: Path) -> None:
    walked = check(tmp_path, "<!-- environment: uv -->\n\n```yaml\nmetrics: [ncdg@10]\n```\n")
    assert "did you mean 'ndcg@10'?" in walked.faults[0]


def test_a_file_that_a_used_file_names_is_used(tmp_path: Path) -> None:
    files = [("a.yaml", "b.yaml"), ("b.yaml", "nothing"), ("c.yaml", "a.yaml")]
    blocks = [f'```yaml title="{name}"\nother: {other}\n```\n' for name, other in files]
    walked = check(tmp_path, "\n".join([*blocks, "```console\n$ cat a.yaml\nother: b.yaml\n```\n"]))
    (fault,) = walked.faults
    assert "no command uses c.yaml" in fault


def test_every_page_of_the_repository_is_checked() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in check_blocks.list_pages()}
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/ci.md", "tests/exchange/apps/README.md"} <= names


def test_every_picture_is_made_by_the_script() -> None:
    script = (ROOT / "docs" / "screenshot.py").read_text(encoding="utf-8")
    pictures = [path for end in ("png", "jpg", "svg", "gif") for path in (ROOT / "docs").rglob(f"*.{end}")]
    assert pictures
    assert [path.name for path in pictures if f'"{path.name}"' not in script] == []
