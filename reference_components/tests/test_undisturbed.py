"""Signals wait until the block is over, and then do what they always do.

Each story is a process of its own: a test runner may not run tests in its main thread, and a signal
that goes astray would end it.
"""

import signal
import subprocess
import sys


def told(story: str) -> subprocess.CompletedProcess[str]:
    """The end of a process that tells this story."""
    lines = ["import signal, threading", "from reference_components.undisturbed import undisturbed"]
    code = "\n".join([*lines, story])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    ended = told(
        "with undisturbed():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print('the block went on', flush=True)\n"
        "print('never')\n"
    )
    assert ended.stdout == "the block went on\n"
    assert "KeyboardInterrupt" in ended.stderr


def test_a_termination_waits_too() -> None:
    ended = told(
        "with undisturbed():\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print('the block went on', flush=True)\n"
        "print('never')\n"
    )
    assert ended.stdout == "the block went on\n"
    assert ended.returncode == -signal.SIGTERM


def test_without_a_signal_nothing_happens_and_the_handlers_are_as_before() -> None:
    ended = told(
        "before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)\n"
        "with undisturbed():\n"
        "    assert signal.getsignal(signal.SIGTERM) is not before[0]\n"
        "assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before\n"
    )
    assert ended.returncode == 0, ended.stderr


def test_in_another_thread_it_changes_nothing() -> None:
    ended = told(
        "seen = []\n"
        "def work():\n"
        "    with undisturbed():\n"
        "        seen.append(signal.getsignal(signal.SIGINT))\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "assert seen == [signal.default_int_handler]\n"
    )
    assert ended.returncode == 0, ended.stderr
