"""How long `rageval-spec view` takes from its start to its first page, beside a command that does nothing.

python benches/view_start.py [--records 200]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from rageval_spec.history.database import FILE, open_history

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.history.records import make_record

COMMAND = [sys.executable, "-m", "rageval_spec"]
TIMES = 11


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200)
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).parent.mkdir()
        with open_history(Path(folder) / FILE) as history:
            history.add([make_record(number) for number in range(count)])
        empty = [measure_command("history", "list", "--history", str(Path(folder) / FILE)) for _ in range(TIMES)]
        pages = [measure_view(folder) for _ in range(TIMES)]
    print(f"{find_processor()}, {count} records, median of {TIMES}")
    print(f"history list         {statistics.median(empty):.3f} s")
    print(f"view, first page     {statistics.median(pages):.3f} s")
    print(f"difference           {statistics.median(pages) - statistics.median(empty):.3f} s")


def measure_command(*arguments: str) -> float:
    """Seconds of a command from start to end."""
    begun = time.perf_counter()
    subprocess.run([*COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def measure_view(folder: str) -> float:
    """Seconds from the start of the program to the whole list of records."""
    begun = time.perf_counter()
    program = subprocess.Popen([*COMMAND, "view", folder, "--no-open"], stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    try:
        address = program.stderr.readline().partition(" is at ")[2].partition(";")[0]
        with urllib.request.urlopen(address) as reply:
            cookie = reply.headers["set-cookie"].partition(";")[0]
        page = urllib.request.Request(address.partition("?")[0], headers={"cookie": cookie})
        assert b"Records" in urllib.request.urlopen(page).read()
        return time.perf_counter() - begun
    finally:
        program.kill()
        program.communicate()


def find_processor() -> str:
    """The name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((one.partition(":")[2].strip() for one in lines if one.startswith("model name")), platform.processor())


if __name__ == "__main__":
    main()
