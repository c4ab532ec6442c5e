"""What `from acp_spec import ...` offers is chosen, and costs nothing until it is used."""

import subprocess
import sys

import acp_spec


def test_every_public_name_can_be_imported_and_only_those() -> None:
    for name in acp_spec.__all__:
        assert getattr(acp_spec, name).__name__ == name
    assert set(acp_spec.__all__) == {name for names in acp_spec._HOME.values() for name in names}


def test_the_pure_types_load_neither_the_sdk_nor_a_server() -> None:
    code = (
        "import sys, acp_spec.model.calls\n"
        "loaded = [m for m in sys.modules if m.startswith(('acp_spec.sdk', 'grpc', 'uvicorn'))]\n"
        "raise SystemExit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
