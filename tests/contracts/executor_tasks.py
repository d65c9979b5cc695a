"""Functions of tasks that other processes import."""

import os
import signal
import time
import warnings

__all__ = ["DEADLY", "WRONG", "Refused", "Unreadable", "dying", "dying_once", "slow_square", "square", "truth"]

WRONG, DEADLY = 9, (7, 23)


class Refused(Exception):
    """An error that cannot be pickled as it is."""

    def __init__(self, number, reason):
        super().__init__(f"{number}: {reason}")


class Unreadable:
    """A function that can be written and not read."""

    def __call__(self, x):
        return x

    def __reduce__(self):
        return _fail, ()


def _fail():
    raise ImportError("nothing of this name on this machine")


def square(x):
    if x == WRONG:
        raise Refused(x, "nine")
    if x == 4:
        warnings.warn("four", UserWarning, stacklevel=1)
    return x * x


def slow_square(x):
    time.sleep(0.03)
    return square(x)


def dying(x):
    if x in DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(x)


def dying_once(item):
    """Die at the first attempt, of which a file in the directory tells."""
    directory, x = item
    mark = os.path.join(directory, str(x))
    if x in DEADLY and not os.path.exists(mark):
        with open(mark, "w"):
            pass
        os._exit(5)
    return x * x


def truth(count, deadly=()):
    """What each task yields, by index: its square, or words of its error."""
    errors = {WRONG: "9: nine"} | dict.fromkeys(deadly, "must leave its worker process alive; got the end of the proce")
    return {x: errors.get(x, x * x) for x in range(count)}
