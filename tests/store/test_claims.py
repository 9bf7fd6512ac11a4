from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rageval_spec.store.claims import FILE, Claims

MODEL, QUESTION = "a" * 64, b"why?"
HOLDER = """
import sys
from pathlib import Path
from rageval_spec.store.claims import Claims
claims = Claims(Path(sys.argv[1]), lambda: None)
print(claims.claim("a" * 64, b"why?"), flush=True)
sys.stdin.readline()
claims.release("a" * 64, b"why?")
print("released", flush=True)
sys.stdin.readline()
"""


def start_holder(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    return holder


def say(holder: subprocess.Popen[str]) -> str:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    return holder.stdout.readline()


def test_a_claimed_question_is_free_when_the_other_process_ends(tmp_path: Path) -> None:
    claims = Claims(tmp_path, lambda: None)
    with start_holder(tmp_path) as holder:
        assert not claims.claim(MODEL, QUESTION)
        assert claims.claim(MODEL, b"another?")
        assert claims.claim("b" * 64, QUESTION)
        assert say(holder) == "released\n"
        assert claims.claim(MODEL, QUESTION)
        holder.kill()
    claims.close()


def test_a_killed_process_holds_no_claim(tmp_path: Path) -> None:
    claims = Claims(tmp_path, lambda: None)
    with start_holder(tmp_path) as holder:
        assert not claims.claim(MODEL, QUESTION)
        holder.kill()
    assert claims.claim(MODEL, QUESTION)
    claims.close()


def test_claims_are_granted_if_the_file_cannot_be_locked(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    claims = Claims(tmp_path, lambda: None)
    assert claims.claim(MODEL, QUESTION)
    claims.release(MODEL, QUESTION)
    claims.close()
