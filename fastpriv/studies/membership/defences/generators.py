"""Generators of noise that are trained against an attacker: Bayes-Nash generative privacy (BNGP), with PyTorch.

Notation: b who is a member, of K people; f their frequencies; nu in [0, 1)^S seeds; the generator maps [b; nu] to noise
delta in [-1/2, 1/2]^m; r = f + delta + dither, clipped to [0, 1] if asked; the attacker maps r to probabilities h_k.

    L = -E sum_k [b_k log h_k + (1 - b_k) log(1 - h_k)] (nats),   U = mean_j kappa_j E|r_j - f_j|

The attacker descends L, the generator one of

    -L + s U,    -L + s (U - budget)^+,    (sum_k H(b_k) - L - budget)^+ + s U,

in turns: a weighted sum with given slope s, a utility budget, a privacy budget. The penalties are exact: the least
information I at utility loss U is convex in U, at most H(b), and 0 from the loss of a constant U_const on, so that its
slope is at most H(b) / U, and that of its inverse at most U_const / I; s is twice, or half, the one that this needs.

L is that of the attacker who is being trained with the generator: another one, trained after the generator is frozen,
may do far better, so that ``evaluate_defence`` has the last word.

Source: Zhang, Venkatesaramani, De, Malin and Vorobeychik 2025 (Bayes-Nash generative privacy), section 5; Ioffe and
Szegedy 2015 (batch normalisation); Kingma and Ba 2015 (Adam).
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....base import files, parallel, random_streams, validate
from ....base.errors import DomainError
from ....base.numerics import FloatArray
from ....base.random_streams import RNGLike
from ..networks import Layers, NetworkAttacker, torch_module
from ..noises import GaussianNoise, GeneratorNoise, LaplaceNoise, Noise
from ..panels import Panel, member_frequencies
from ..priors import prior_of
from ..releases import FrequencyRelease
from .equilibrium import attribute_weights_over_count
from .finite_defence import memberships_of

__all__ = ["TrainedGenerator", "train_generator"]

_STEPS_OF_DECAY = 100  # after which the learning rate is multiplied by ``decay``
_STEPS_OF_CHECKPOINT = 100  # between two writings
_LEAK = 0.01  # slope of the leaky rectifier below 0, the usual one
# bound: none - a factor of a penalty of the training
_SAFETY = 2.0  # by which the penalty of a budget exceeds what makes it exact
_SCALE_DRAWS = 1000  # frequencies whose mean and spread scale the input of the attacker
_PENALTY_SEEDS = 16  # of the mixture over seeds in the penalty of the joint posterior


@dataclass(frozen=True, eq=False, repr=False)
class TrainedGenerator:
    """What ``train_generator`` returns.

    Parameters
    ----------
    release : FrequencyRelease
        The defended release; its noise is a ``GeneratorNoise``, which needs no PyTorch.
    attacker : NetworkAttacker
        The attacker that was trained with the generator, as it was after the last step.
    history : ndarray, shape (steps, 2)
        Of each step of the generator: utility loss, and the attacker's loss L in nats, of a batch.
    attribute_weights : ndarray, shape (m,)
        kappa_j.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, Panel, train_generator
    >>> panel = Panel([[1, 0, 1], [0, 1, 1], [0, 0, 1]])
    >>> trained = train_generator(panel, FixedSizeMembership(1), slope=2.0, steps=200, rng=1)  # doctest: +SKIP
    >>> trained.release.simulate(5, rng=1).released.shape  # doctest: +SKIP
    (5, 3)
    """

    release: FrequencyRelease
    attacker: NetworkAttacker
    history: FloatArray
    attribute_weights: FloatArray

    def __repr__(self) -> str:
        loss, risk = self.history[-1]
        return (
            f"<TrainedGenerator after {len(self.history)} steps: utility loss {loss:.4g} and loss of the attacker "
            f"trained with it {risk:.4g} nats in the last batch>"
        )


def train_generator(
    panel: Panel, prior: Any, *, slope: float | None = None, utility_budget: float | None = None,
    privacy_budget: float | None = None, joint_epsilon: float | None = None,
    attribute_weights: ArrayLike | None = None, dither: Noise | None = None, clip: bool = True, n_seeds: int = 30,
    hidden: Any = (128, 128), attacker_hidden: Any = (128, 64), steps: int = 2000, attacker_steps: int = 2,
    batch_size: int = 128, learning_rate: float = 1e-3, decay: float = 0.95, rng: RNGLike = None,
    checkpoint: str | os.PathLike[str] | None = None, threads: int = 1, progress: parallel.Progress = None,
) -> TrainedGenerator:  # fmt: skip
    """Train a generator of noise against an attacker that is trained in turns with it.

    Parameters
    ----------
    panel : Panel
        The people and their attributes.
    prior : BernoulliMembership or FixedSizeMembership
        Who is a member.
    slope : float, optional
        s >= 0, the nats that one unit of utility loss is worth: the weighted sum. Give this or one of the budgets.
    utility_budget : float, optional
        Utility loss that the training aims at from below, positive.
    privacy_budget : float, optional
        Nats sum_k H(b_k) - L that the attacker may learn, positive.
    joint_epsilon : float, optional
        An epsilon, positive: what the condition on the joint posterior lacks of it is added to the objective as a
        penalty, of at most 12 people and with a dither. ``FiniteDefence.of_release`` proves what came of it.
    attribute_weights : array_like, shape (m,), optional
        kappa_j >= 0, of which one is positive; 1 for all by default.
    dither : GaussianNoise, LaplaceNoise or LInfinityNoise, optional
        Noise of full dimension that is added to each release, in training too. Without it the release has no
        differential privacy.
    clip : bool, default True
        Whether releases are clipped to [0, 1].
    n_seeds : int, default 30
        Number of seeds of a release.
    hidden : sequence of int, default (128, 128)
        Widths of the hidden layers of the generator, each linear and batch-normalised; the first is rectified, the
        others have leaky rectifiers. (1500, 1100, 500) are those of the source, for 800 people and 5,000 attributes.
    attacker_hidden : sequence of int, default (128, 64)
        Widths of the hidden layers of the attacker, which are rectified; (3400, 2000) are those of the source.
    steps : int, default 2000
        Steps of the generator.
    attacker_steps : int, default 2
        Steps of the attacker before each of them; the source has 1.
    batch_size : int, default 128
        Releases a step, at least 2, drawn anew.
    learning_rate, decay : float
        Of Adam, both networks; it is multiplied by ``decay`` after each 100 steps, evenly.
    rng : int, Generator or None
        Source of the weights and of all releases.
    checkpoint : path, optional
        File that is written, atomically, after each 100 steps and at the end. Where it exists the training goes on from
        it, and gives the weights that it would have given without the interruption; it needs the same game, parameters
        and integer seed. With more ``steps`` a finished training goes on.
    threads : int, default 1
        Threads of PyTorch; the weights may depend on their number.
    progress : bool or callable, optional
        Whether a bar counts the steps, or a function of the number done and the total.

    Returns
    -------
    TrainedGenerator

    Raises
    ------
    DomainError, ShapeError
        For numbers outside their range, none or several of slope and budgets, a checkpoint of another training.
    BackendMissingError
        Without PyTorch: ``pip install 'fastpriv[networks]'``.

    Notes
    -----
    The loss of the attacker in ``history`` is not what a later attacker has: see ``evaluate_defence``. Budgets are aims
    of the training, not promises. The same seed gives the same weights on one machine, version of PyTorch and number
    of threads.

    **Accuracy** No promise: ``tests/membership/test_generators.py`` checks that no generator beats the dual certificate
    of the exact equilibrium of small games, and that resumed trainings have the same bits.

    Source: Zhang et al. 2025, section 5 and its appendix on networks.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, Panel, train_generator
    >>> panel = Panel([[1, 0, 1], [0, 1, 1], [0, 0, 1]])
    >>> trained = train_generator(panel, FixedSizeMembership(1), slope=2.0, steps=200, rng=1)  # doctest: +SKIP
    >>> trained.release.noise  # doctest: +SKIP
    <GeneratorNoise of 30 seeds, dither None>
    """
    validate.instance("panel", panel, Panel)
    marginals = prior_of("prior", prior).marginals(panel.n_people)
    game = _Game(
        panel, prior, *_objective(slope, utility_budget, privacy_budget), attribute_weights_over_count(
            attribute_weights, panel.n_attributes), dither, validate.flag("clip", clip),
        validate.count("n_seeds", n_seeds), _widths("hidden", hidden), _widths("attacker_hidden", attacker_hidden),
        validate.count("attacker_steps", attacker_steps), validate.count("batch_size", batch_size, 2),
        validate.scalar("learning_rate", learning_rate, "positive and finite", lambda x: (x > 0) & np.isfinite(x)),
        validate.scalar("decay", decay, "above 0 and at most 1", lambda x: (x > 0) & (x <= 1)), _entropies(marginals),
        None if joint_epsilon is None else validate.scalar(
            "joint_epsilon", joint_epsilon, "positive and finite", lambda x: (x > 0) & np.isfinite(x)),
    )  # fmt: skip
    if joint_epsilon is not None and dither is None:
        raise DomainError("dither must be given with joint_epsilon; got None. Without dither its epsilon is infinite.")
    FrequencyRelease(panel, prior, GeneratorNoise(lambda _, seeds: seeds, 1, dither), clip=clip)  # checks the dither
    count, cores = validate.count("steps", steps), validate.count("threads", threads)
    parallel.checked(None, progress)
    root = random_streams.root(rng)
    path = None if checkpoint is None else validate.path("checkpoint", checkpoint)
    torch = torch_module("train_generator")
    before = torch.get_num_threads()
    report, close = parallel.progress_reporter(progress, count)
    torch.set_num_threads(cores)
    try:
        training = _GeneratorTraining(torch, game, root)
        if path is not None and path.exists():
            training.load(_read_checkpoint(torch, path, training.key))
        elif path is not None:
            files.check_writable_file(path)
        while len(training.history) < count:
            training.step()
            done = len(training.history)
            if path is not None and (done % _STEPS_OF_CHECKPOINT == 0 or done == count):
                _write_checkpoint(torch, path, training.state())
            report(done)
        if len(training.history) > count:
            raise DomainError(
                f"steps must be at least those of the checkpoint, {len(training.history)}; got {count}. Ask for more, "
                "or name another file."
            )
        noise = GeneratorNoise(training.frozen_generator(), game.n_seeds, dither)
        attacker = training.frozen_attacker()
    finally:
        torch.set_num_threads(before)
        close()
    history = np.array(training.history)
    release = FrequencyRelease(panel, prior, noise, clip=clip)
    return TrainedGenerator(release, attacker, history, game.weights * panel.n_attributes)


def _objective(slope: Any, utility_budget: Any, privacy_budget: Any) -> tuple[str, float]:
    """Which objective, and its number."""
    given = {name: value for name, value in (
        ("slope", slope), ("utility_budget", utility_budget), ("privacy_budget", privacy_budget)
    ) if value is not None}  # fmt: skip
    if len(given) != 1:
        names = " and ".join(given) or "none of them"
        raise DomainError(
            f"slope must be given, or utility_budget, or privacy_budget, and one of them only; got {names}. Give one."
        )
    ((name, value),) = given.items()
    if name == "slope":
        return name, validate.scalar(name, value, "at least 0 and finite", lambda x: (x >= 0) & np.isfinite(x))
    return name, validate.scalar(name, value, "positive and finite", lambda x: (x > 0) & np.isfinite(x))


def _widths(name: str, widths: Any) -> tuple[int, ...]:
    return tuple(validate.count(name, width) for width in validate.sequence(name, widths, "widths of layers"))


def _entropies(marginals: FloatArray) -> float:
    """sum_k H(b_k), nats."""
    inside = marginals[(marginals > 0) & (marginals < 1)]
    return float(-(inside * np.log(inside) + (1 - inside) * np.log1p(-inside)).sum())


@dataclass(frozen=True, eq=False)
class _Game:
    """What is trained."""

    panel: Panel
    prior: Any
    objective: str
    level: float
    weights: FloatArray  # kappa_j / m
    dither: Noise | None
    clip: bool
    n_seeds: int
    hidden: tuple[int, ...]
    attacker_hidden: tuple[int, ...]
    attacker_steps: int
    batch_size: int
    learning_rate: float
    decay: float
    prior_entropy: float
    joint_epsilon: float | None

    def digest(self, root: Any) -> str:
        """What a checkpoint belongs to."""
        digest = hashlib.sha256(np.ascontiguousarray(self.panel.packed).tobytes())
        terms = self.prior.log_prior(self.panel.n_people)
        for numbers in (terms.log_odds, terms.log_size_weights, self.weights):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        if self.dither is not None:
            for name in self.dither._fields:
                digest.update(np.ascontiguousarray(getattr(self.dither, name)).tobytes())
        settings = (
            self.panel.n_attributes, type(self.prior).__name__, type(self.dither).__name__, self.objective, self.level,
            self.clip, self.n_seeds, self.hidden, self.attacker_hidden, self.attacker_steps, self.batch_size,
            self.learning_rate, self.decay, self.joint_epsilon, root.entropy, root.spawn_key,
        )  # fmt: skip
        digest.update(repr(settings).encode())
        return digest.hexdigest()


class _GeneratorTraining:
    """Both networks and their optimisers."""

    def __init__(self, torch: Any, game: _Game, root: Any) -> None:
        self.torch, self.game, self.root, self.key = torch, game, root, game.digest(root)
        m, people = game.panel.n_attributes, game.panel.n_people
        words = random_streams.stream_words(root, (0,), 2)
        seeds = [int(word >> np.uint64(1)) for word in words]  # PyTorch takes 63 bits
        self.generator = self._network(seeds[0], people + game.n_seeds, game.hidden, m, _LEAK)
        self.attacker = NetworkAttacker(game.attacker_hidden, rng=seeds[1])
        self.network = self._network(seeds[1], m, game.attacker_hidden, people, 0.0)
        draws = np.random.default_rng(random_streams.stream_words(root, (1,), 4))
        f = member_frequencies(self.game.panel, game.prior.draw(_SCALE_DRAWS, people, draws))
        self.attacker._set_scale(f)
        self.scale = tuple(torch.from_numpy(x.astype(np.float32)) for x in (self.attacker._mean, self.attacker._spread))
        self.optimisers = tuple(
            torch.optim.Adam(one.parameters(), lr=game.learning_rate) for one in (self.generator, self.network)
        )
        self.kappa = torch.from_numpy(game.weights.astype(np.float32))
        constant = float((np.abs(f - np.median(f, axis=0)) @ game.weights).mean())
        self.slope = game.level
        if game.objective == "utility_budget":
            self.slope = _SAFETY * game.prior_entropy / game.level
        elif game.objective == "privacy_budget":
            self.slope = game.level / (_SAFETY * constant) if constant > 0.0 else 0.0
        self.history: list[tuple[float, float]] = []
        if game.joint_epsilon is not None:
            members, logs = memberships_of(game.panel, game.prior)
            scales = game.dither.scale_of(members.sum(axis=1))  # type: ignore[union-attr]
            every = (members, member_frequencies(game.panel, members), logs, scales)
            self.every = tuple(torch.from_numpy(x.astype(np.float32)) for x in every)

    def step(self) -> None:
        """Steps of the attacker, and one of the generator."""
        torch, game = self.torch, self.game
        done = len(self.history)
        draws = np.random.default_rng(random_streams.stream_words(self.root, (2, done), 4))
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = game.learning_rate * game.decay ** (done / _STEPS_OF_DECAY)
        self.generator.train()
        self.network.train()
        for _ in range(game.attacker_steps):
            with torch.no_grad():
                released, members, *_ = self._batch(draws)
            self.optimisers[1].zero_grad()
            self._risk(released, members).backward()
            self.optimisers[1].step()
        released, members, f, unclipped = self._batch(draws)
        loss = ((released - f).abs() @ self.kappa).mean()
        risk = self._risk(released, members)
        self.optimisers[0].zero_grad()
        objective = self._objective(loss, risk)
        if game.joint_epsilon is not None:
            objective = objective + self._joint_penalty(unclipped, draws)
        objective.backward()
        self.optimisers[0].step()
        self.history.append((loss.item(), risk.item()))

    def _objective(self, loss: Any, risk: Any) -> Any:
        """What the generator descends."""
        game = self.game
        if game.objective == "utility_budget":
            return self.slope * (loss - game.level).clamp(min=0.0) - risk
        if game.objective == "privacy_budget":
            return (game.prior_entropy - game.level - risk).clamp(min=0.0) + self.slope * loss
        return self.slope * loss - risk

    def _joint_penalty(self, released: Any, draws: Any) -> Any:
        """What 2 max |log J(b | r) - log theta(b)| exceeds epsilon by, before clipping, by a mixture over seeds."""
        torch, game = self.torch, self.game
        epsilon = game.joint_epsilon
        assert epsilon is not None
        members, f, prior, scales = self.every
        seeds = torch.from_numpy(draws.random((_PENALTY_SEEDS, game.n_seeds)).astype(np.float32))
        inputs = torch.cat([
            members.repeat_interleave(_PENALTY_SEEDS, dim=0), seeds.repeat(len(members), 1)], dim=1)  # fmt: skip
        self.generator.eval()  # the statistics of the batches are those of the prior
        shift = torch.sigmoid(self.generator(inputs)) - 0.5
        self.generator.train()
        means = (f[:, None] + shift.reshape(len(members), _PENALTY_SEEDS, -1)).reshape(len(inputs), -1)
        norm = {GaussianNoise: 2.0, LaplaceNoise: 1.0}.get(type(game.dither), math.inf)  # type: ignore[arg-type]
        away = torch.cdist(released, means, p=norm).reshape(len(released), len(members), -1) / scales[:, None]
        logs = (-0.5 * away**2 if norm == 2.0 else -away).logsumexp(dim=2) - f.shape[1] * scales.log()
        ratios = (logs - (logs + prior).logsumexp(dim=1, keepdim=True)).abs().max(dim=1).values
        excess = (2.0 * ratios - epsilon).clamp(min=0.0).mean()
        return _SAFETY * game.prior_entropy / epsilon * excess

    def _batch(self, draws: Any) -> tuple[Any, Any, Any, Any]:
        """Releases, memberships and frequencies of a batch, and the releases before clipping."""
        game, tensor = self.game, self.torch.from_numpy
        b = game.prior.draw(game.batch_size, game.panel.n_people, draws)
        f = tensor(member_frequencies(self.game.panel, b).astype(np.float32))
        members = tensor(b.astype(np.float32))
        seeds = tensor(draws.random((game.batch_size, game.n_seeds)).astype(np.float32))
        released = f + self.torch.sigmoid(self.generator(self.torch.cat([members, seeds], dim=1))) - 0.5
        if game.dither is not None:
            released = released + tensor(game.dither.draw(b, game.panel.n_attributes, draws).astype(np.float32))
        return released.clamp(0.0, 1.0) if game.clip else released, members, f, released

    def _risk(self, released: Any, members: Any) -> Any:
        """Mean over releases of the attacker's cross-entropy, summed over people, nats."""
        logits = self.network((released - self.scale[0]) / self.scale[1])
        loss = self.torch.nn.functional.binary_cross_entropy_with_logits(logits, members)
        return loss * self.game.panel.n_people

    def _network(self, seed: int, inputs: int, hidden: tuple[int, ...], outputs: int, leak: float) -> Any:
        """Linear layers, batch-normalised and rectified; rectifiers after the first have the slope ``leak`` below 0."""
        torch, layers, width = self.torch, list[Any](), inputs
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for wide in hidden:
                rectifier = torch.nn.LeakyReLU(leak) if layers and leak else torch.nn.ReLU()
                layers += [torch.nn.Linear(width, wide), torch.nn.BatchNorm1d(wide), rectifier]
                width = wide
            return torch.nn.Sequential(*layers, torch.nn.Linear(width, outputs))

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "key": self.key, "generator": self.generator.state_dict(), "attacker": self.network.state_dict(),
            "optimisers": [one.state_dict() for one in self.optimisers], "history": self.history,
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.generator.load_state_dict(state["generator"])
        self.network.load_state_dict(state["attacker"])
        for one, saved in zip(self.optimisers, state["optimisers"], strict=True):
            one.load_state_dict(saved)
        self.history = [tuple(row) for row in state["history"]]

    def frozen_generator(self) -> _FrozenGenerator:
        """The function of the noise."""
        return _FrozenGenerator(_frozen(self.generator, _LEAK))

    def frozen_attacker(self) -> NetworkAttacker:
        """The attacker as it is now."""
        self.attacker._layers = _frozen(self.network, 0.0)
        self.attacker.history = [(risk / self.game.panel.n_people, math.nan) for _, risk in self.history]
        self.attacker.name = "network trained with the generator"
        return self.attacker


def _frozen(network: Any, leak: float) -> Layers:
    """A network in NumPy, with the batch normalisation of its training put into the linear maps."""
    parts = list(network.eval())
    maps = []
    for start in range(0, len(parts), 3):
        matrix, shift = (x.detach().numpy().astype(np.float64) for x in parts[start].parameters())
        if start + 1 < len(parts):
            norm = parts[start + 1]
            gain, offset, mean, variance = (
                x.detach().numpy().astype(np.float64)
                for x in (norm.weight, norm.bias, norm.running_mean, norm.running_var)
            )
            factor = gain / np.sqrt(variance + norm.eps)
            matrix, shift = factor[:, None] * matrix, factor * (shift - mean) + offset
        maps.append((matrix.T, shift))
    return Layers(tuple(maps), leak)


@dataclass(frozen=True, eq=False)
class _FrozenGenerator:
    """The function of a ``GeneratorNoise``: memberships and seeds to noise."""

    layers: Layers

    def __call__(self, membership: NDArray[np.bool_], seeds: FloatArray) -> FloatArray:
        inputs = np.hstack([np.asarray(membership, dtype=np.float64), seeds])
        return np.asarray(0.5 * np.tanh(0.5 * self.layers.outputs(inputs)))


def _write_checkpoint(torch: Any, path: Any, state: dict[str, Any]) -> None:
    """Write the state of a training, atomically."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with files.atomic_write(path) as stream:
        stream.write(buffer.getvalue())


def _read_checkpoint(torch: Any, path: Any, key: str) -> dict[str, Any]:
    """The state after the last step of this training; no code of the file is run."""
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
