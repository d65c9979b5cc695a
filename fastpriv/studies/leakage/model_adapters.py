"""Models of PyTorch as victims.

Notation: as the head of ``fastpriv.leakage``.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError, explain_missing_package
from ...base.numerics import FloatArray
from ...base.random_streams import RNGLike
from .trainable_models import checked_label_logits, checked_labels, checked_records, checked_weights


class TorchModel:
    """A module of PyTorch as a model, in double precision on the CPU.

    Parameters
    ----------
    module : torch.nn.Module
        Maps a batch of records to logits, shape (S, C). A copy is kept, in doubles and in evaluation mode, so that what
        a module draws or averages in training, such as dropout, is switched off.
    n_features : int
        Numbers of a record, D.
    n_classes : int
        Logits, C.
    input_shape : sequence of int, optional
        Shape that the module takes a record in, such as (1, 8, 8); by default flat, (D,).

    Raises
    ------
    DomainError, ShapeError
        For what is no module, a module without parameters, an input shape of another size, or logits of another shape.
    BackendMissingError
        Without PyTorch.

    Notes
    -----
    Weights are the module's parameters in its own order, flattened one after another. Gradients of single records are
    those of ``torch.func``.

    **Accuracy** ``tests/leakage/test_model_adapters.py`` compares with ``MultilayerPerceptron`` of the same weights.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from fastpriv.leakage import TorchModel
    >>> model = TorchModel(torch.nn.Linear(64, 10), n_features=64, n_classes=10)  # doctest: +SKIP
    >>> model.n_parameters  # doctest: +SKIP
    650
    """

    def __init__(self, module: Any, n_features: int, n_classes: int, *, input_shape: Any = None) -> None:
        torch = _torch()
        validate.instance("module", module, torch.nn.Module, "a torch.nn.Module", "Pass one from records to logits.")
        self.n_features = validate.count("n_features", n_features)
        self.n_classes = validate.count("n_classes", n_classes, 2)
        shape = validate.sequence("input_shape", (n_features,) if input_shape is None else input_shape, "sizes")
        sizes = tuple(validate.count("input_shape", size) for size in shape)
        if int(np.prod(sizes)) != self.n_features:
            raise ShapeError(
                f"input_shape must be a shape of {self.n_features} numbers, the features; got {sizes}. Pass the shape "
                "of one record."
            )
        self.input_shape = sizes
        self.module = copy.deepcopy(module).double().cpu().eval()
        self._names = [name for name, _ in self.module.named_parameters()]
        self.n_parameters = sum(parameter.numel() for parameter in self.module.parameters())
        if self.n_parameters == 0:
            raise DomainError(f"module must have parameters; got a {type(module).__name__} without any. Pass another.")
        with torch.no_grad():
            result = tuple(self.module(torch.zeros((2, *sizes), dtype=torch.float64)).shape)
        if result != (2, self.n_classes):
            raise ShapeError(
                f"module must map 2 records to logits of shape {(2, self.n_classes)}; got shape {result}. Check "
                "n_classes and input_shape."
            )

    def initial(self, rng: RNGLike = None) -> FloatArray:
        """Fresh weights, shape (P,): every submodule that has ``reset_parameters`` is reset; others keep theirs."""
        torch = _torch()
        seed = int(random_streams.generator(rng).integers(2**63))
        fresh = copy.deepcopy(self.module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for part in fresh.modules():
                if callable(reset := getattr(part, "reset_parameters", None)):
                    reset()
        return np.concatenate([parameter.detach().numpy().ravel() for parameter in fresh.parameters()])

    @property
    def current(self) -> FloatArray:
        """The weights that the module came with, shape (P,)."""
        return np.concatenate([parameter.detach().numpy().ravel() for parameter in self.module.parameters()])

    def logits(self, weights: ArrayLike, records: ArrayLike) -> FloatArray:
        """Scores of the classes, shape (S, C), of records of shape (S, D)."""
        torch = _torch()
        w, x = checked_weights(self, weights), checked_records(self, records)
        with torch.no_grad():
            return np.asarray(self._logits(self._parameters(torch, w), self._inputs(torch, x)).numpy())

    def losses(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Cross-entropy of each record, shape (S,), in nats."""
        torch, w, x, y = self._arguments(weights, records, labels)
        with torch.no_grad():
            result = torch.nn.functional.cross_entropy(self._logits(w, x), y, reduction="none")
        return np.asarray(result.numpy())

    def gradient(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Mean gradient of the records' losses by the weights, shape (P,)."""
        torch, w, x, y = self._arguments(weights, records, labels)
        result = torch.func.grad(lambda p: torch.nn.functional.cross_entropy(self._logits(p, x), y))(w)
        return np.concatenate([result[name].detach().numpy().ravel() for name in self._names])

    def per_example_gradients(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> FloatArray:
        """Gradient of each record's loss by the weights, shape (S, P)."""
        torch, w, x, y = self._arguments(weights, records, labels)

        def loss(parameters: Any, record: Any, label: Any) -> Any:
            return torch.nn.functional.cross_entropy(self._logits(parameters, record[None]), label[None])

        result = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(w, x, y)
        return np.concatenate([result[name].detach().numpy().reshape(len(x), -1) for name in self._names], axis=1)

    def matching(
        self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike, target: ArrayLike
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Squared distance of the mean gradient of records from a target, and its derivatives.

        Arguments and answers are those of ``MultilayerPerceptron.matching``; derivatives are automatic.
        """
        torch = _torch()
        w, x = checked_weights(self, weights), checked_records(self, records)
        goal = torch.from_numpy(checked_weights(self, target, "target").copy())
        parameters = {name: entry.requires_grad_() for name, entry in self._parameters(torch, w).items()}
        inputs = self._inputs(torch, x).requires_grad_()
        soft = np.ndim(labels) == 2
        if soft:
            logits = torch.from_numpy(checked_label_logits(self, labels, len(x)).copy()).requires_grad_()
            y = torch.softmax(logits, dim=1)
        else:
            y = torch.from_numpy(checked_labels(self, labels, len(x)).copy())
        loss = torch.nn.functional.cross_entropy(self._logits(parameters, inputs), y)
        rows = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        value = ((torch.cat([row.reshape(-1) for row in rows]) - goal) ** 2).sum()
        result = torch.autograd.grad(value, [inputs, logits] if soft else [inputs])
        by_records = result[0].numpy().reshape(len(x), -1)
        return value.item(), by_records, result[1].numpy() if soft else None

    def _arguments(self, weights: ArrayLike, records: ArrayLike, labels: ArrayLike) -> tuple[Any, Any, Any, Any]:
        torch = _torch()
        w, x = checked_weights(self, weights), checked_records(self, records)
        y = checked_labels(self, labels, len(x))
        return torch, self._parameters(torch, w), self._inputs(torch, x), torch.from_numpy(y.copy())

    def _parameters(self, torch: Any, weights: FloatArray) -> dict[str, Any]:
        flat, start, result = torch.from_numpy(weights.copy()), 0, {}
        for name, item in self.module.named_parameters():
            result[name] = flat[start : start + item.numel()].reshape(item.shape)
            start += item.numel()
        return result

    def _inputs(self, torch: Any, x: FloatArray) -> Any:
        return torch.from_numpy(x.copy()).reshape(len(x), *self.input_shape)

    def _logits(self, parameters: dict[str, Any], x: Any) -> Any:
        return _torch().func.functional_call(self.module, parameters, (x,))

    def __repr__(self) -> str:
        module = " ".join(repr(self.module).split())
        return f"TorchModel({module}, {self.n_features}, {self.n_classes}, input_shape={self.input_shape})"


def _torch() -> Any:
    """PyTorch, which may not be installed."""
    with explain_missing_package("TorchModel", "PyTorch", "'fastpriv[networks]'"):
        import torch
    return torch
