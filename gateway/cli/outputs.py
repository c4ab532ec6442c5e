"""Files that a command writes for whoever called it, each named by the option that asked for it.

The place is looked at before the work: nobody should learn behind minutes of it that there is no
such folder. What cannot be written is told in one line, and never as a check that failed.
"""

from pathlib import Path

from acp_spec.bindings.errors import invalid_request


def check_place(option: str, file: Path | None) -> None:
    """INVALID_REQUEST for a place where no file can be."""
    if file is None:
        return
    if file.is_dir():
        raise invalid_request(f"{option}: {file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise invalid_request(f"{option}: there is no folder {file.parent}")


def write_file(file: Path, data: bytes, *, option: str) -> None:
    """Write it whole; INVALID_REQUEST says why it cannot be."""
    try:
        file.write_bytes(data)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise invalid_request(f"{option}: {file} cannot be written: {why}") from None


def make_folder(option: str, folder: Path) -> None:
    """The folder, made if it is not there yet; INVALID_REQUEST says why it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise invalid_request(f"{option}: {folder} cannot be made: {why}") from None
