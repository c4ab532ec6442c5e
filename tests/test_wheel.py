"""The wheel stands alone: built, installed into a clean environment, run outside the checkout.

Third-party libraries are borrowed from the environment of the tests, so that no registry is needed;
the checkout itself is not on the path.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from gateway.tests.served import serve_gateway
from gateway.transports import dashboard_files

ROOT = Path(__file__).parent.parent
PACKAGES = [
    "acp_spec",
    "gateway",
    "adapters",
    "reference_components",
    "trainer",
    "conformance_tests",
]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel and none of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    # a plain path in a .pth file lends the libraries, but not the editable install beside them
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, capture_output=True)
    return folder / "bin"


def test_the_wheel_holds_the_six_packages_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == set(PACKAGES)
    assert [name for name in names if "/tests/" in name or "/.build/" in name] == []


def test_the_wheel_holds_the_dashboard_as_it_is_served_and_not_its_sources(wheel: Path) -> None:
    folder = "gateway/transports/dashboard/"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(folder)}
    assert names == {f"{folder}static/{name}" for name in dashboard_files.FILES}


def test_the_packages_come_from_the_wheel_and_not_from_the_checkout(
    installed: Path, tmp_path: Path
) -> None:
    code = f"import importlib as i; print(*(i.import_module(n).__file__ for n in {PACKAGES}))"
    printed = subprocess.run(
        [installed / "python", "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert str(ROOT) not in printed


def test_a_gateway_serves_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    served = serve_gateway(
        data_dir=tmp_path / "data",
        log_file=tmp_path / "gateway.log",
        environ={"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"},
        acp=installed / "acp",
    )
    assert served.stop() == 0


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Without other languages on the path: their builds are the business of other tests."""
    folder = str(tmp_path / "demo")
    command = [str(installed / "acp"), "demo", "--json", "--limit", "3", "--data-dir", folder]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PATH": str(installed)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["sessions"] == 3
    assert told["problems"] == []
    assert str(ROOT) not in ran.stdout
