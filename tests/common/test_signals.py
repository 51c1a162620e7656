import os
import select
import signal
import subprocess
import threading
import time

from balog.common.signals import StopSignals, signals_for_main_thread


def test_a_signal_wakes_a_waiting_program_whichever_thread_it_interrupts():
    """Given a signal that does not interrupt the main thread's wait, then ``wake`` ends the wait all the same."""

    def interrupt_this_thread():
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with StopSignals() as stop:
        thread = threading.Thread(target=interrupt_this_thread)
        thread.start()
        ready, _, _ = select.select([stop.wake], [], [], 10)
        thread.join()
        assert ready == [stop.wake]
        assert stop.number == signal.SIGTERM


def test_a_main_thread_that_waits_for_another_hears_a_signal_at_once():
    """Given a signal to the process while its main thread joins another one, then its handler runs at once."""
    heard = threading.Event()
    with signals_for_main_thread():
        thread = threading.Thread(target=heard.wait, args=(30,))
        thread.start()
    old = signal.signal(signal.SIGUSR1, lambda number, frame: heard.set())
    try:
        with subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -USR1 {os.getpid()}"]):
            thread.join()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert heard.is_set()


def test_signals_reach_the_main_thread_again_afterwards():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals_for_main_thread():
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    assert signal.set_wakeup_fd(-1) == -1
