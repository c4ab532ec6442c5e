"""What a program in the sandbox cannot reach: the network, files, others' rights, ourselves."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_spec.sdk.sandbox import (
    Guard,
    Limits,
    Program,
    SandboxUnavailable,
    capabilities,
    run,
)
from acp_spec.sdk.sandbox.tests.running import AMPLE, AMPLE_MS, processes_with, python, shell

GIVEN = {one.guard: one for one in capabilities()}


def needs_guard(*guards: Guard) -> pytest.MarkDecorator:
    """These systems say why they cannot; there the program is refused, which is tested below."""
    lacking = [f"{guard.value} ({GIVEN[guard].why})" for guard in guards if not GIVEN[guard].held]
    return pytest.mark.skipif(bool(lacking), reason=f"needs {', '.join(lacking)}")


@contextlib.contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


CONNECT = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 2).close()
    print("reached")
except OSError as problem:
    print("refused")
"""


@needs_guard(Guard.NETWORK)
def test_no_network_unless_allowed() -> None:
    with listening() as port:
        assert python(CONNECT.format(port=port)).output == b"refused\n"
        allowed = Limits(network=True, wall_ms=AMPLE_MS, cpu_ms=AMPLE_MS)
        assert python(CONNECT.format(port=port), limits=allowed).output == b"reached\n"


@needs_guard(Guard.NETWORK)
def test_a_socket_without_a_file_does_not_reach_out_either() -> None:
    name = f"\0acp-sandbox-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        text = f"""
import socket
try:
    socket.socket(socket.AF_UNIX).connect({name!r})
    print("reached")
except OSError:
    print("refused")
"""
        assert python(text).output == b"refused\n"


@needs_guard(Guard.READ_ONLY_FILES)
def test_only_the_scratch_directory_can_be_written(tmp_path: Path) -> None:
    readable = tmp_path / "readable"
    readable.mkdir(mode=0o777)
    readable.chmod(0o777)
    text = f"""
import os
for folder in ("/usr", "/etc", "/", "/dev", "/proc/sys", "/opt", {str(readable)!r}):
    try:
        open(os.path.join(folder, "new"), "w")
        print("wrote", folder)
    except OSError:
        pass
open("mine", "w").write("x")
print(os.getcwd(), "mine" in os.listdir("."))
"""
    program = Program(command=("python3", "-I", "-c", text), reads=(readable,))
    assert run(program, limits=AMPLE).output == b"/tmp True\n"
    assert not list(readable.iterdir())


@needs_guard(Guard.READ_ONLY_FILES)
def test_what_is_not_listed_is_not_seen(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    secret.chmod(0o644)
    seen = shell(f"cat {secret} /proc/1/environ /root/* /home/* /var/lib/* /run/*; ls /; exit 0")
    assert b"hidden" not in seen.output
    assert set(seen.output.split()) <= {
        b"bin", b"dev", b"etc", b"lib", b"lib32", b"lib64", b"libx32", b"opt", b"proc", b"sbin",
        b"tmp", b"usr",
    }  # fmt: skip


@needs_guard(Guard.READ_ONLY_FILES)
def test_runs_find_an_empty_scratch_directory_each() -> None:
    shell("echo left > behind")
    assert shell("ls -A").output == b""


@needs_guard(Guard.OWN_USER, Guard.WHOLE_TREE)
def test_it_is_a_user_of_its_own_that_can_signal_nobody() -> None:
    seen = python(f"""
import os
print(os.getuid(), os.getgid(), os.getgroups())
for pid in ({os.getpid()}, 1):
    try:
        os.kill(pid, 9)
        print("killed", pid)
    except OSError:
        pass
""")
    user, group, *_ = seen.output.split()
    assert int(user) not in (0, os.getuid())
    assert int(group) != 0
    assert b"killed" not in seen.output


def test_it_has_no_rights_and_can_get_none() -> None:
    seen = shell("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    told = dict(line.split(b":\t") for line in seen.output.splitlines())
    assert told.pop(b"NoNewPrivs") == b"1"
    assert set(told.values()) == {b"0" * 16}


@needs_guard(Guard.SYSTEM_CALLS)
@pytest.mark.parametrize("call", ["unshare(0x10000000)", "unshare(0x20000)", "ptrace(0, 0, 0, 0)"])
def test_calls_that_could_lift_a_guard_are_refused(call: str) -> None:
    seen = python(f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.{call}, ctypes.get_errno())
""")
    assert seen.output == b"-1 1\n"


@needs_guard(Guard.SYSTEM_CALLS)
def test_no_user_namespace_by_clone_either() -> None:
    """In one of its own a program would be root, and could mount a directory without a size."""
    seen = python("""
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
done = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)
if done == 0:
    import os; os._exit(0)
print(done, ctypes.get_errno())
""")
    assert seen.output == b"-1 1\n"


def test_nothing_of_the_environment_and_no_open_file_comes_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACP_TOKEN", "secret-of-the-component")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        seen = shell("env; ls /proc/self/fd | wc -w")
    words = seen.output.decode()
    assert "secret" not in words
    assert {line.partition("=")[0] for line in words.splitlines()[:-1]} <= {
        "PATH", "HOME", "TMPDIR", "LANG", "PWD", "OLDPWD", "SHLVL", "_",
    }  # fmt: skip
    assert int(words.splitlines()[-1]) == 4, "three pipes and the listing itself"


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sleep", ["{word}", "600"])
    os._exit(0)
os.wait()
print("{{}}", flush=True)
{rest}
"""


@pytest.mark.parametrize("cgroup", ["auto", "off"])
def test_nothing_outlives_the_run(monkeypatch: pytest.MonkeyPatch, cgroup: str) -> None:
    monkeypatch.setenv("ACP_SANDBOX_CGROUP", cgroup)
    word = f"left-behind-{os.getpid()}-{cgroup}"
    assert python(DAEMON.format(word=word, rest="")).succeeded
    assert not processes_with(word)


def test_a_run_is_stopped_from_outside() -> None:
    wanted = threading.Event()
    wanted.set()
    program = Program(command=("sleep", "600"))
    stopped = run(program, limits=AMPLE, stop=wanted.is_set)
    assert stopped.stopped
    assert not stopped.succeeded


def test_the_run_ends_with_its_component_however_that_dies() -> None:
    word = f"600.0{os.getpid()}"
    text = (
        "from acp_spec.sdk.sandbox import Limits, Program, run\n"
        f"run(Program(command=('sleep', {word!r})), limits=Limits(wall_ms=600_000))"
    )
    component = subprocess.Popen([sys.executable, "-c", text])
    turns = threading.Event()  # never set: a wait with an end, between two looks
    sleeping: list[int] = []
    for _ in range(400):
        sleeping = [pid for pid in processes_with(word) if _is_sleep(pid)]
        if sleeping:
            break
        turns.wait(0.05)
    assert sleeping
    component.kill()
    component.wait()
    for _ in range(400):
        if not any(_is_sleep(pid) for pid in processes_with(word)):
            return
        turns.wait(0.05)
    raise AssertionError("the program outlived its component")


def _is_sleep(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    return False


def test_a_program_that_is_not_there_is_told_before_anything_ran() -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-program cannot be started"):
        run(Program(command=("no-such-program",)), limits=AMPLE)


def test_what_the_system_cannot_hold_is_refused_when_demanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACP_SANDBOX_CGROUP", "off")
    exact = Limits(also=frozenset({Guard.MEMORY_EXACT}), wall_ms=AMPLE_MS)
    with pytest.raises(SandboxUnavailable, match="MEMORY_EXACT: control groups are switched off"):
        run(Program(command=("true",)), limits=exact)
    assert run(Program(command=("true",)), limits=AMPLE).succeeded


def test_every_guard_is_told_of_with_a_mechanism_or_a_reason_and_advice() -> None:
    assert [one.guard for one in capabilities()] == list(Guard)
    for one in capabilities():
        assert one.mechanism if one.held else one.why and one.advice


WITHOUT_NAMESPACES = """
import os, sys
from acp_spec.sdk.warden import syscalls
syscalls.control(syscalls.PR_CAPBSET_DROP, 21)  # CAP_SYS_ADMIN, as a container's root has none
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
IN_A_CONTAINER = """
import json
from acp_spec.sdk.sandbox import Guard, Limits, Program, SandboxUnavailable, capabilities, run
lacking = frozenset(one.guard for one in capabilities() if not one.held)
limits = Limits(wall_ms=20_000, cpu_ms=20_000, processes=40, waived=lacking)
def shell(text):
    return run(Program(command=("/bin/sh", "-c", text)), limits=limits)
try:
    run(Program(command=("true",)))
    refused = ""
except SandboxUnavailable as problem:
    refused = str(problem)
connect = "import socket; socket.socket()"
print(json.dumps({
    "lacking": sorted(one.value for one in lacking),
    "refused": refused,
    "seen": shell("id -u; echo x > mine; ls; (setsid sleep WORD &) ; echo done").output.decode(),
    "bomb": shell("while true; do sleep 60 & done").limit.value,
    "socket": run(Program(command=("python3", "-c", connect)), limits=limits).errors.decode(),
}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a right to lose")
@pytest.mark.parametrize("cgroup", ["auto", "off"])
def test_where_no_namespace_can_be_made_the_rest_holds_and_the_lack_is_refused(cgroup: str) -> None:
    word = f"600.{os.getpid()}{len(cgroup)}"
    program = IN_A_CONTAINER.replace("WORD", word)
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES, program],
        env={**os.environ, "ACP_SANDBOX_CGROUP": cgroup},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert {"READ_ONLY_FILES", "SCRATCH_SIZE"} <= set(told["lacking"])
    assert "READ_ONLY_FILES: no mount namespace" in told["refused"]
    user, *words = told["seen"].split()
    assert int(user) != 0
    assert words == ["mine", "done"]
    assert told["bomb"] == "PROCESSES"
    if GIVEN[Guard.SYSTEM_CALLS].held:
        assert "NETWORK" not in told["lacking"]
        assert "Operation not permitted" in told["socket"]
    assert not processes_with(word)


AS_NOBODY = """
import json, sys
from acp_spec.sdk.sandbox import Guard, Limits, Program, capabilities, run
given = {one.guard.value: one.mechanism if one.held else "" for one in capabilities()}
lacking = frozenset(Guard(name) for name, how in given.items() if not how)
limits = Limits(wall_ms=20_000, cpu_ms=20_000, waived=lacking)
look = "id -u; touch /usr/x /etc/x; ls /; cat /proc/net/dev"
seen = run(Program(command=("/bin/sh", "-c", look)), limits=limits)
bomb = run(Program(command=("/bin/sh", "-c", "while true; do sleep 60 & done")),
           limits=Limits(wall_ms=20_000, cpu_ms=20_000, processes=40, waived=lacking))
print(json.dumps({"given": given, "seen": seen.output.decode(), "bomb": bomb.limit.value}))
"""


def interpreter_for_everybody() -> tuple[str, dict[str, str]]:
    """A Python of our version that any user may start, and where it finds our packages."""
    own = os.path.realpath(sys.executable)
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (own, system):
        if candidate.startswith("/usr/") and Path(candidate).exists():
            import msgspec

            site = Path(msgspec.__file__).parents[1]
            return candidate, {"PYTHONPATH": f"{Path(__file__).parents[4]}:{site}"}
    pytest.skip(f"needs a Python that any user may start, such as {system}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody to try it")
def test_without_root_user_namespaces_hold_the_same_or_the_lack_is_told() -> None:
    python_path, environ = interpreter_for_everybody()
    ran = subprocess.run(
        [python_path, "-c", AS_NOBODY], user=65534, group=65534, extra_groups=[], cwd="/",
        env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Permission denied" in ran.stderr and "acp_spec" in ran.stderr:
        pytest.skip("needs a checkout that any user may read")
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["bomb"] == "PROCESSES"
    if told["given"]["OWN_USER"]:
        assert told["seen"].split()[0] == "1000"
        assert told["given"]["READ_ONLY_FILES"] == "mount namespace"
        assert "home" not in told["seen"]
        assert told["given"]["NETWORK"] == "network namespace"
