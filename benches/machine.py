"""What a benchmark ran on."""

from __future__ import annotations

from pathlib import Path


def name_processor() -> str:
    """The processor's name, as Linux gives it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "an unknown processor")
