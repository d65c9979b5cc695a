"""Models of PyTorch beside those of the package with the same weights."""

import pickle
import sys

import numpy as np
import pytest
from scipy.optimize import check_grad

from fastpriv import DomainError
from fastpriv.errors import BackendMissingError, ShapeError
from fastpriv.studies.leakage import MultilayerPerceptron, TorchModel, Training

RNG = np.random.default_rng(2)
RECORDS, LABELS = RNG.standard_normal((60, 4)), RNG.integers(0, 3, 60)


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_torch_modules_agree_with_layered_models(torch):
    ours = MultilayerPerceptron(4, [7], 3, "tanh")
    module = torch.nn.Sequential(torch.nn.Linear(4, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    theirs = TorchModel(module, 4, 3)
    w = ours.initial(1)
    first, second = ours.matrices(w)
    flat = np.concatenate([first[:, :-1].ravel(), first[:, -1], second[:, :-1].ravel(), second[:, -1]])
    order = np.argsort(np.concatenate([
        np.arange(35).reshape(7, 5)[:, :-1].ravel(), np.arange(35).reshape(7, 5)[:, -1],
        35 + np.arange(24).reshape(3, 8)[:, :-1].ravel(), 35 + np.arange(24).reshape(3, 8)[:, -1]]))
    np.testing.assert_allclose(theirs.logits(flat, RECORDS), ours.logits(w, RECORDS), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(theirs.losses(flat, RECORDS, LABELS), ours.losses(w, RECORDS, LABELS), rtol=1e-12)
    for name in ("gradient", "per_example_gradients"):
        found = getattr(theirs, name)(flat, RECORDS, LABELS)[..., order]
        np.testing.assert_allclose(found, getattr(ours, name)(w, RECORDS, LABELS), rtol=1e-11, atol=1e-14)
    u, t = np.random.default_rng(5).standard_normal((60, 3)), ours.initial(2)
    for labels in (LABELS, u):
        for found, expected in zip(theirs.matching(flat, RECORDS, labels, t[np.argsort(order)]),
                                   ours.matching(w, RECORDS, labels, t), strict=True):
            assert (found is None) == (expected is None)
            np.testing.assert_allclose(0.0 if found is None else found, 0.0 if expected is None else expected,
                                       rtol=1e-10, atol=1e-14)
    run = Training(theirs, rounds=3, learning_rate=0.5, batch_size=5)
    np.testing.assert_array_equal(run.run(RECORDS, LABELS, rng=1).shared, run.run(RECORDS, LABELS, rng=1).shared)
    assert (theirs.initial(1) == theirs.initial(1)).all()
    assert (theirs.initial(1) != theirs.initial(2)).any()
    again = pickle.loads(pickle.dumps(theirs))
    np.testing.assert_array_equal(again.current, theirs.current)


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "softplus", "relu"])
def test_gradient_matching_agrees_with_automatic_differentiation(torch, activation):
    ours = MultilayerPerceptron(4, [6, 5], 3, activation)
    w, rng = ours.initial(1), np.random.default_rng(4)
    x, u, t = rng.standard_normal((3, 4)), rng.standard_normal((3, 3)), rng.standard_normal(ours.n_parameters)
    layers = [torch.tensor(matrix, requires_grad=True) for matrix in ours.matrices(w)]
    records, logits = torch.tensor(x, requires_grad=True), torch.tensor(u, requires_grad=True)
    a, apply = records, getattr(torch.nn.functional, activation, None) or getattr(torch, activation)
    for index, matrix in enumerate(layers):
        z = a @ matrix[:, :-1].T + matrix[:, -1]
        a = apply(z) if index < len(layers) - 1 else z
    loss = -(torch.softmax(logits, dim=1) * torch.log_softmax(a, dim=1)).sum(dim=1).mean()
    gradients = torch.autograd.grad(loss, layers, create_graph=True)
    flat = torch.cat([one.reshape(-1) for one in gradients])
    value = ((flat - torch.tensor(t)) ** 2).sum()
    by_records, by_logits = torch.autograd.grad(value, [records, logits])
    found = ours.matching(w, x, u, t)
    assert found[0] == pytest.approx(value.item(), rel=1e-12)
    np.testing.assert_allclose(found[1], by_records.numpy(), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[2], by_logits.numpy(), rtol=1e-10, atol=1e-13)


def test_images_and_wrong_modules(torch):
    image = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(2, 3))
    model = TorchModel(image, 4, 3, input_shape=(1, 2, 2))

    def loss(weights):
        return model.losses(weights, RECORDS, LABELS).mean()

    assert check_grad(loss, lambda w: model.gradient(w, RECORDS, LABELS), model.current) < 1e-6
    with pytest.raises(DomainError, match="module must be a torch.nn.Module; got 'linear'. Pass one from records to"):
        TorchModel("linear", 4, 3)
    with pytest.raises(ShapeError, match="input_shape must be a shape of 4 numbers, the features; got"):
        TorchModel(image, 4, 3, input_shape=(1, 2, 3))
    with pytest.raises(DomainError, match="module must have parameters; got a Identity without any. Pass another"):
        TorchModel(torch.nn.Identity(), 4, 4)
    with pytest.raises(ShapeError, match=r"module must map 2 records to logits of shape \(2, 5\); got shape \(2, 3\)"):
        TorchModel(torch.nn.Linear(4, 3), 4, 5)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendMissingError, match=r"TorchModel needs PyTorch. Install it with: pip install"):
        TorchModel(None, 4, 3)
