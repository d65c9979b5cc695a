"""The errors: what they are, so that callers can catch them."""

import pickle

import pytest

from fastpriv import DomainError, Estimate
from fastpriv.errors import BackendMissingError, NotConvergedError, ShapeError


@pytest.mark.parametrize(
    ("error", "base"),
    [(DomainError, ValueError), (ShapeError, ValueError), (NotConvergedError, RuntimeError),
     (BackendMissingError, ImportError)],
)
def test_errors_are_what_python_programs_catch(error, base):
    with pytest.raises(base, match="said"):
        raise error("said")
    assert str(pickle.loads(pickle.dumps(error("said")))) == "said"


def test_what_was_reached_is_carried():
    best = Estimate(0.5, 0.0, 1.0, kind="certified", unit="1", method="test")
    fault = NotConvergedError("accuracy must be reachable; got 10 steps.", best)
    assert fault.best is best
    assert NotConvergedError("nothing").best is None
    twin = pickle.loads(pickle.dumps(fault))
    assert (str(twin), twin.best.value) == (str(fault), 0.5)
