"""Whether a call lets other threads run, told without a clock."""

import sys
import threading

__all__ = ["lets_others_run"]

NEVER = 1000.0  # seconds after which Python itself would let another thread run


def lets_others_run(call, most):
    """Whether a waiting thread ran during one of ``most`` calls; only a call that gives up Python's lock allows it.

    With the switch interval out of reach Python takes the lock from nobody, so the waiting thread runs when this one
    gives it up, and not before. More than one call, since the waiting thread may be woken late on a busy machine.
    """
    gate, ran = threading.Lock(), []

    def wait():
        with gate:
            ran.append(True)

    interval = sys.getswitchinterval()
    waiting = threading.Thread(target=wait)
    gate.acquire()
    waiting.start()
    try:
        sys.setswitchinterval(NEVER)
        gate.release()
        for _ in range(most):
            call()
            if ran:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        waiting.join()
