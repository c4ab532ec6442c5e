"""How tests run a program: shell and Python texts in the sandbox, with limits of seconds."""

from pathlib import Path

from acp_spec.sdk.sandbox import Limits, Outcome, Program, run

PROGRAMS = Path(__file__).with_name("programs")
MIB = 1024 * 1024
AMPLE_MS = 20_000
"""Far more than a program here needs on a busy machine, for the limits that a test is not about."""

AMPLE = Limits(wall_ms=AMPLE_MS, cpu_ms=AMPLE_MS)


def python(text: str, *, limits: Limits = AMPLE, stdin: bytes = b"") -> Outcome:
    """Run a Python text as it stands."""
    return run(Program(command=("python3", "-I", "-c", text)), stdin, limits=limits)


def shell(text: str, *, limits: Limits = AMPLE, stdin: bytes = b"") -> Outcome:
    return run(Program(command=("/bin/sh", "-c", text)), stdin, limits=limits)


def processes_with(word: str) -> list[int]:
    """Living processes whose command line holds this word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in told:
            found.append(int(folder.name))
    return found
