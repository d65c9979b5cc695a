"""An attack by a neural network, trained on simulated releases with PyTorch on the CPU.

Notation: m attributes of a release, K people. The network maps a release to K logits; its loss is the mean binary
cross-entropy over people and releases, in nats.

Source: Ioffe and Szegedy 2015 (batch normalisation); Kingma and Ba 2015 (Adam).
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import files, parallel, random_streams, validate
from ...base.errors import BackendMissingError, DomainError
from ...base.numerics import BoolArray, FloatArray
from ...base.random_streams import RNGLike
from .attackers import TrainedAttack, training_releases, unfitted

__all__ = ["NetworkAttacker"]

_HIDDEN_SHARES = (0.68, 0.4)  # of m, in hidden layers: 3400 and 2000 of 5000, as in the comparison that is the model
_ROWS = 1024  # of releases that are scored at a time
_SMALLEST_BATCH = 2  # batch normalisation needs the spread of a batch


class NetworkAttacker(TrainedAttack):
    """A neural network that maps a release to the membership probabilities of all people.

    Parameters
    ----------
    hidden : sequence of int, optional
        Widths of the hidden layers, each linear, batch-normalised and rectified; by default 0.68 m and 0.4 m, at least
        K: for 5,000 attributes and 800 people 3,400 and 2,000.
    epochs : int
        Passes over the training releases.
    batch_size : int
        Releases a step of Adam, at least 2.
    learning_rate : float
        Of the first epoch; positive.
    decay : float
        Factor of the learning rate after each epoch, in (0, 1].
    validation : float
        Fraction of the releases, in [0, 1), that are held out: the weights of the epoch with the least loss there are
        kept. With 0 those of the last epoch are.
    rng : int, Generator or None
        Source of the initial weights, the order of releases and the choice of those held out.

    Attributes
    ----------
    history : list of (float, float)
        Mean cross-entropy of each epoch, of training and of held-out releases (NaN without them).

    Raises
    ------
    DomainError, ShapeError
        For parameters outside their range, training data of wrong shapes, a checkpoint of another training.
    BackendMissingError
        Without PyTorch.

    Notes
    -----
    Releases are centred and divided by their standard deviation in the training set. Training runs on one thread of the
    CPU by default: the same seed gives the same weights on one machine and version of PyTorch.

    **Accuracy** ``tests/membership/test_networks.py`` compares with the exact posterior of a small model.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, NetworkAttacker, Panel
    >>> model = FrequencyRelease(Panel([[1, 0, 1], [0, 1, 1], [0, 0, 1]]), FixedSizeMembership(1), GaussianNoise(0.1))
    >>> training = model.simulate(2000, rng=1)
    >>> attack = NetworkAttacker(hidden=[16], epochs=5, rng=1)  # doctest: +SKIP
    >>> attack.fit(training.released, training.membership).claims([1.0, 0.0, 1.0])  # doctest: +SKIP
    array([ True, False, False])
    """

    name = "neural network"

    def __init__(
        self, hidden: Any = None, *, epochs: int = 30, batch_size: int = 128, learning_rate: float = 1e-3,
        decay: float = 0.95, validation: float = 0.1, rng: RNGLike = None,
    ) -> None:  # fmt: skip
        self.hidden = None if hidden is None else tuple(
            validate.count("hidden", width) for width in validate.sequence("hidden", hidden, "widths of layers")
        )
        self.epochs = validate.count("epochs", epochs)
        self.batch_size = validate.count("batch_size", batch_size, _SMALLEST_BATCH)
        self.learning_rate = validate.scalar(
            "learning_rate", learning_rate, "positive and finite", lambda x: (x > 0) & np.isfinite(x)
        )
        self.decay = validate.scalar("decay", decay, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1))
        self.validation = validate.scalar(
            "validation", validation, "at least 0 and below 1", lambda x: (x >= 0) & (x < 1)
        )
        random_streams.checked(rng)
        self.rng = rng
        self.history: list[tuple[float, float]] = []
        self._network: Any = None

    def fit(
        self, released: ArrayLike, membership: ArrayLike, *, checkpoint: str | os.PathLike[str] | None = None,
        threads: int = 1, progress: parallel.Progress = None,
    ) -> NetworkAttacker:  # fmt: skip
        """Train the network.

        Parameters
        ----------
        released : array_like, shape (R, m)
            Simulated releases, at least 2 that are not held out.
        membership : array_like of bool, shape (R, K)
            Who is a member of each.
        checkpoint : path, optional
            File that is written, atomically, after each epoch. Where it exists the training goes on from it, and gives
            the weights that it would have given without the interruption; it needs the same data, parameters and
            integer seed.
        threads : int
            Threads of PyTorch; the weights may depend on their number.
        progress : bool or callable, optional
            Whether a bar counts the epochs, or a function of the number done and the total.
        """
        torch = torch_module("NetworkAttacker")
        people = np.shape(membership)[-1] if np.ndim(membership) else 0
        r, b = training_releases(released, membership, people)
        root = random_streams.root(self.rng)
        held_out = int(self.validation * len(r))
        if len(r) - held_out < _SMALLEST_BATCH:
            raise DomainError(
                f"released must have at least {_SMALLEST_BATCH} releases that are not held out; got {len(r)}, of which "
                f"{held_out} are held out. Simulate more."
            )
        self._set_scale(r)
        order = np.random.default_rng(random_streams.stream_words(root, (0,), 4)).permutation(len(r))
        x = torch.from_numpy(self._scaled(r)[0].astype(np.float32)[order])
        y = torch.from_numpy(b.astype(np.float32)[order])
        rest = len(r) - held_out
        key = self._digest(r, b, root)
        before = torch.get_num_threads()
        report, close = parallel.progress_reporter(progress, self.epochs)
        torch.set_num_threads(validate.count("threads", threads))
        try:
            seed = int(random_streams.stream_words(root, (1,), 1)[0] >> np.uint64(1))  # PyTorch takes 63 bits
            network = self._built(torch, r.shape[1], people, seed)
            optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, self.decay)
            loss = torch.nn.BCEWithLogitsLoss()
            history: list[tuple[float, float]] = []
            best: Any = (math.inf, None)
            path = None if checkpoint is None else validate.path("checkpoint", checkpoint)
            if path is not None and path.exists():
                state = read_checkpoint(torch, path, key)
                network.load_state_dict(state["network"])
                optimiser.load_state_dict(state["optimiser"])
                schedule.load_state_dict(state["schedule"])
                history, best = [tuple(pair) for pair in state["history"]], (state["best_loss"], state["best"])
            elif path is not None:
                files.check_writable_file(path)
            for epoch in range(len(history), self.epochs):
                shuffled = np.random.default_rng(random_streams.stream_words(root, (2, epoch), 4)).permutation(rest)
                trained = self._epoch(torch, network, optimiser, loss, x, y, shuffled)
                network.eval()
                with torch.no_grad():
                    tested = float(loss(network(x[rest:]), y[rest:])) if held_out else math.nan
                schedule.step()
                history.append((trained, tested))
                if not held_out or tested < best[0]:
                    best = (tested, {name: one.clone() for name, one in network.state_dict().items()})
                if path is not None:
                    write_checkpoint(torch, path, {
                        "key": key, "network": network.state_dict(), "optimiser": optimiser.state_dict(),
                        "schedule": schedule.state_dict(), "history": history, "best_loss": best[0], "best": best[1],
                    })  # fmt: skip
                report(epoch + 1)
            if best[1] is not None:
                network.load_state_dict(best[1])
            network.eval()
        finally:
            torch.set_num_threads(before)
            close()
        self._network, self.history = network, history
        return self

    def scores(self, released: ArrayLike) -> FloatArray:
        """Logits of membership, shape (..., K).

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        if self._network is None:
            raise unfitted(self)
        torch = torch_module("NetworkAttacker")
        rows, shape = self._scaled(released)
        rows = rows.astype(np.float32)
        with torch.no_grad():
            parts = parallel.blocks(len(rows), _ROWS)
            logits = [self._network(torch.from_numpy(rows[part])).numpy() for part in parts]
        people = self._network[-1].out_features
        flat = np.concatenate([np.zeros((0, people), dtype=np.float32), *logits]).astype(np.float64)
        return np.asarray(flat.reshape(*shape, people))

    def predict_proba(self, released: ArrayLike) -> FloatArray:
        """Probabilities of membership as the network states them, shape (..., K).

        Parameters
        ----------
        released : array_like, shape (..., m)
            Releases.
        """
        from scipy.special import expit

        return np.asarray(expit(self.scores(released)))

    def _widths(self, n_attributes: int, people: int) -> tuple[int, ...]:
        if self.hidden is not None:
            return self.hidden
        return tuple(max(people, round(share * n_attributes)) for share in _HIDDEN_SHARES)

    def _built(self, torch: Any, n_attributes: int, people: int, seed: int) -> Any:
        """The network with its initial weights; PyTorch's own random numbers are left as they were."""
        layers: list[Any] = []
        width = n_attributes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for wide in self._widths(n_attributes, people):
                layers += [torch.nn.Linear(width, wide), torch.nn.BatchNorm1d(wide), torch.nn.ReLU()]
                width = wide
            return torch.nn.Sequential(*layers, torch.nn.Linear(width, people))

    def _epoch(self, torch: Any, network: Any, optimiser: Any, loss: Any, x: Any, y: Any, order: Any) -> float:
        """One pass over the training releases; their mean loss. A last batch of one joins the one before."""
        network.train()
        starts = list(range(0, len(order), self.batch_size))
        if len(order) - starts[-1] < _SMALLEST_BATCH:
            starts.pop()
        total = 0.0
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            index = torch.from_numpy(order[start:stop])
            optimiser.zero_grad()
            found = loss(network(x[index]), y[index])
            found.backward()
            optimiser.step()
            total += found.item() * (stop - start)
        return total / len(order)

    def _digest(self, r: FloatArray, b: BoolArray, root: Any) -> str:
        """What a checkpoint belongs to."""
        digest = hashlib.sha256(np.ascontiguousarray(r).tobytes())
        digest.update(np.packbits(b).tobytes())
        settings = (r.shape, b.shape, self._widths(r.shape[1], b.shape[1]), self.epochs, self.batch_size,
                    self.learning_rate, self.decay, self.validation, root.entropy, root.spawn_key)  # fmt: skip
        digest.update(repr(settings).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        trained = "not trained" if self._network is None else f"{len(self.history)} epochs"
        return f"<NetworkAttacker, {trained}>"


def torch_module(user: str) -> Any:
    """PyTorch, which ``user`` needs."""
    try:
        import torch
    except ImportError:
        raise BackendMissingError(f"{user} needs PyTorch. Install it with: pip install 'fastpriv[networks]'") from None
    return torch


def write_checkpoint(torch: Any, path: Any, state: dict[str, Any]) -> None:
    """Write the state of a training, atomically."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with files.atomic_write(path) as stream:
        stream.write(buffer.getvalue())


def read_checkpoint(torch: Any, path: Any, key: str) -> dict[str, Any]:
    """The state after the last epoch of this training; no code of the file is run."""
    try:
        state = torch.load(path, weights_only=True)
        same = state["key"] == key
    except Exception:  # PyTorch raises errors of many classes for a file that is not its own
        same = False
        state = {}
    if not same:
        raise DomainError(
            f"checkpoint must be a file of this training, with its data, parameters and seed; got {str(path)!r}. "
            "Remove it, or name another; with rng an integer a training can be resumed."
        )
    return dict(state)
