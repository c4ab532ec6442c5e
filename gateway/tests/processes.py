"""What the system tells of a running process: the memory it took."""

from pathlib import Path


def rss_mib(pid: int) -> float:
    """Memory that the process holds now."""
    return _kib(pid, "VmRSS") / 1024


def peak_rss_mib(pid: int) -> float:
    """The most memory that it ever held."""
    return _kib(pid, "VmHWM") / 1024


def _kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"/proc/{pid}/status has no {name}")
