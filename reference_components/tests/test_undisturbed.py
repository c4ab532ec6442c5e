"""Signals wait until the block is over, and then do what they always do."""

import signal
import threading

import pytest

from reference_components.undisturbed import undisturbed


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    done = []

    def interrupted() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("the block went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_signal_nothing_happens_and_the_handlers_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with undisturbed():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_it_changes_nothing() -> None:
    def work() -> None:
        with undisturbed():
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
