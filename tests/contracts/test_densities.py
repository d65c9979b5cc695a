"""Densities of the person's own: what goes wrong in their functions and samplers is said, with the function, the point
and the remedy."""

import copy
import pickle
import subprocess
import sys

import numba
import numpy as np
import pytest

from fastpriv import Density, DomainError, total_variation
from fastpriv.base.random_streams import root, stream_words
from fastpriv.distributions import LogRatio
from fastpriv.errors import BackendMissingError, SamplingWarning, ShapeError
from fastpriv.kernels.jit import point_loops
from oracles import user_densities as given
from oracles.user_densities import D, points

WORDS = stream_words(root(7), (1, 2), 4)


def vectorized(function, sampler=None, **keywords):
    return Density(function, sampler, dimension=D, vectorized=True, **keywords)


@pytest.fixture(scope="module")
def jitted():
    return Density(given.normal_jitted, given.normal_sampler_jitted, dimension=D)


# the constructor


@pytest.mark.parametrize("function", [0.5, None, np.zeros(3)])
def test_what_is_not_a_function_is_refused(function):
    with pytest.raises(DomainError, match=r"log_density must be a function; got .*Pass the function itself"):
        Density(function, dimension=D)
    with pytest.raises(DomainError, match="log_ratio must be a function; got"):
        LogRatio(function, given.normal_sampler, dimension=D)
    unsampled = Density(lambda x: -0.5 * (x * x).sum(axis=-1), dimension=2, vectorized=True)
    with pytest.raises(DomainError, match=r"p must have a sampler, or q; got neither. Pass Density\(log_density, sam"):
        total_variation(unsampled, unsampled)
    with pytest.raises(DomainError, match="sampler_q must be a function; got 0.5"):
        LogRatio(given.log_ratio_vectorized, given.normal_sampler, dimension=D, sampler_q=0.5)
    with pytest.raises(DomainError, match="sampler must be a function; got 0.5"):
        Density(given.normal_plain, 0.5, dimension=D)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [({"dimension": 0}, "dimension must be an integer of at least 1; got 0"),
     ({"dimension": 2.5}, "dimension must be an integer of at least 1; got 2.5"),
     ({"dimension": D, "name": 3}, "name must be a string or None; got 3"),
     ({"dimension": D, "vectorized": 1}, "vectorized must be True or False; got 1"),
     ({"dimension": D, "jit": "yes"}, "jit must be True or False; got 'yes'")],
)
def test_keywords_are_checked(keywords, said):
    with pytest.raises(DomainError, match=said):
        Density(given.normal_plain, **keywords)


# what numba can't compile


def unknown_name(x):
    return np.block(x)


def bad_call(x):
    return x.sum(axis=0, keepdims=True)


@numba.njit
def inner(x):
    return undefined_here(x)  # noqa: F821


def outer(x):
    return inner(x)


@pytest.mark.parametrize(
    ("function", "said"),
    [(unknown_name, r"got 'unknown_name', where numba stops at line \d+ \(return np\.block\(x\)\): "
                    "Use of unsupported NumPy function 'numpy.block'"),
     (bad_call, r"got 'bad_call', where numba stops.*No implementation of function .*>>> array_sum\(array"),
     (outer, "got 'outer', where numba stops.*NameError: name 'undefined_here' is not defined"),
     (lambda x, y: 0.0, "got '<lambda>', where numba stops: Cannot bind .*missing a required argument: 'y'")],
)
def test_what_numba_refuses_is_one_sentence(function, said):
    with pytest.raises(DomainError, match="log_density must be a function that numba can compile; " + said) as caught:
        Density(function, dimension=D, jit=True)
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert "vectorized=True" in str(caught.value)


def test_a_function_compiled_for_other_arguments_is_refused():
    with pytest.raises(DomainError, match=r"it is compiled for other arguments than array\(float64, 1d, C\)"):
        Density(numba.njit("float64(float64)")(lambda x: x), dimension=1)


def test_what_is_no_python_function_is_not_compiled():
    with pytest.raises(DomainError, match=r"log_density must be a function made by def or lambda for jit=True; got"):
        Density(WORDS.sum, dimension=D, jit=True)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("function", "said"),
    [(lambda x: -x, r"returns array\(float64, 1d, C\) for one point.*\(x\[0\] in one dimension\)"),
     (lambda x: 1j * x[0], "returns complex128 for one point"),
     (lambda x: None, "returns nothing for one point")],
)
def test_a_jitted_function_returns_one_real_number(function, said):
    with pytest.raises(DomainError, match="log_density must return one real number; got '<lambda>', which " + said):
        Density(function, dimension=1, jit=True)


def test_a_jitted_function_of_many_points_returns_one_number_each():
    with pytest.raises(DomainError, match=r"log_density must return one real number a point; got '<lambda>', which "
                                          r"returns array\(float64, 2d, C\) for points of shape"):
        Density(lambda x: -x, dimension=D, vectorized=True, jit=True)


def test_a_function_with_threads_of_its_own_is_refused():
    with pytest.raises(DomainError, match="log_density must not be compiled with parallel=True; got '<lambda>'"):
        Density(numba.njit(parallel=True)(lambda x: x[0]), dimension=1)


@pytest.mark.slow
def test_a_jitted_sampler_fills_its_point():
    with pytest.raises(DomainError, match=r"sampler must fill x and return nothing when it is jitted; got '<lambda>', "
                                          r"which returns float64"):
        Density(given.normal_jitted, numba.njit(lambda rng, x: rng.standard_normal()), dimension=D)
    lazy = Density(given.normal_jitted, numba.njit(lambda rng, x: None), dimension=D)
    with pytest.raises(DomainError, match=r"sampler must draw finite points; got nan in coordinate 0 of draw 0 "
                                          r"\(24 of 24 entries\).*Assign every x\[j\]"):
        lazy.draw(WORDS, 8)


def test_numba_missing_is_said_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(BackendMissingError, match="numba is needed to compile a function; it is not installed. Run"):
        point_loops._numba()


def test_numba_is_not_loaded_by_what_does_not_need_it():
    code = (
        "import sys, numpy as np, fastpriv; p = fastpriv.GaussianMixture.single(0.0, 1.0);"
        "q = fastpriv.Density(lambda x: -0.5 * x[:, 0]**2 - 0.9189385332046727, lambda rng, n: rng.normal(size=n),"
        " dimension=1, vectorized=True); q.trial(np.arange(4, dtype=np.uint64)); fastpriv.kl_divergence(p, p);"
        "print('numba' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"


# values


@pytest.mark.parametrize(
    ("first", "said"),
    [([0, 0, 1, 1], r"a number or -inf at every point; got nan from 'hard' at point 2 of block 5, x = \[1.0, .* "
                    r"\(2 of 4 points\): no logarithm is nan"),
     ([0, 2], r"a number or -inf at every point; got inf from 'hard' at point 1 of block 5.*a density is finite"),
     ([0, 0, 0, 4], r"a number or -inf at every point; got ValueError: no fours from 'hard' at point 3 of block 5")],
)
@pytest.mark.parametrize("form", ["jitted", "plain"])
def test_a_bad_value_is_named_with_its_point(first, said, form):
    p = Density(given.hard if form == "jitted" else given.hard.py_func, dimension=D)
    assert p.form == form
    with pytest.raises(DomainError, match="log_density must .*" + said.removeprefix("must ")) as caught:
        p.evaluate(points(first), block=5)
    assert (caught.value.__cause__ is not None) == ("fours" in said)


def test_zero_density_is_a_value_except_at_ones_own_draws():
    p = Density(given.hard, dimension=D)
    np.testing.assert_array_equal(p.evaluate(points([0, 3])), [0, -np.inf])
    with pytest.raises(DomainError, match=r"log_density must be a number at every point; got -inf from 'hard' at point "
                                          r"1, x = .*it is the density's own draw.*or the sampler if it leaves"):
        p.evaluate(points([0, 3]), drawn_from=True)
    with pytest.raises(DomainError, match="got -inf from 'hard' at point 1"):
        p.evaluate(points([0, 3]), drawn_from=pickle.loads(pickle.dumps(p)))
    other = Density(given.normal_jitted, dimension=D)
    np.testing.assert_array_equal(p.evaluate(points([0, 3]), drawn_from=other), [0, -np.inf])


def test_a_ratio_is_infinite_only_where_it_may_be():
    ratio = LogRatio(given.hard, given.normal_sampler, dimension=D, sampler_q=given.normal_sampler)
    np.testing.assert_array_equal(ratio.evaluate(points([2, 3])), [np.inf, -np.inf])
    np.testing.assert_array_equal(ratio.evaluate(points([2]), drawn_from="p"), [np.inf])
    np.testing.assert_array_equal(ratio.evaluate(points([3]), drawn_from="q"), [-np.inf])
    with pytest.raises(DomainError, match="log_ratio must be a number at every point; got -inf .*it is a draw of P"):
        ratio.evaluate(points([3]), drawn_from="p")
    with pytest.raises(DomainError, match="log_ratio must be a number.*got inf .*it is a draw of Q, so q is not zero"):
        ratio.evaluate(points([2]), drawn_from="q")


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [(lambda x: x, ShapeError, r"return one number a point, shape \(4,\) for points of .*; got shape \(4, 3\)"),
     (lambda x: x[:2, 0], ShapeError, r"got shape \(2,\) from '<lambda>'"),
     (lambda x: x[:, :1], ShapeError, r"got shape \(4, 1\)"),
     (lambda x: 0.0, ShapeError, r"got shape \(\)"),
     (lambda x: x[:, 0] * 1j, DomainError, "must return real numbers; got an array of complex128 from '<lambda>'"),
     (lambda x: ["a"] * 4, DomainError, "must return real numbers; got an array of <U1"),
     (lambda x: None, DomainError, "must return real numbers; got an array of object"),
     (lambda x: 1 / 0, DomainError, "got ZeroDivisionError: division by zero from '<lambda>' at point 0, x = ")],
)
def test_a_function_of_many_points_returns_one_number_each(function, error, said):
    with pytest.raises(error, match="log_density must .*" + said.removeprefix("must ")):
        vectorized(function).evaluate(points([0, 0, 0, 0]))


def test_the_point_where_a_function_of_many_raises_is_found():
    def at_four(x):
        if (x[:, 0] == 4).any():
            raise ArithmeticError("four")
        return x[:, 0]

    with pytest.raises(DomainError, match=r"ArithmeticError: four from 'at_four' at point 2, x = \[4.0, 0.0, 0.0\]"):
        vectorized(at_four).evaluate(points([0, 1, 4]))

    def together(x):
        if len(x) > 1:
            raise ArithmeticError("only alone")
        return x[:, 0]

    with pytest.raises(DomainError, match=r"ArithmeticError: only alone from 'together' of block 2\. Mend"):
        vectorized(together).evaluate(points([0, 1, 4]), block=2)


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.zeros(3), r"an array of shape \(3,\)"), (1j, "1j"), ("0.5", "'0.5'"), (None, "None"), ([0.5], r"\[0.5\]")],
)
def test_a_plain_function_returns_one_real_number(value, said):
    with pytest.raises(DomainError, match=f"log_density must return one real number for one point; got {said} from "
                                          r"'<lambda>' at point 0, x = \[0.0, .*pass vectorized=True"):
        Density(lambda x: value, dimension=D).evaluate(points([0]))


@pytest.mark.parametrize("value", [1, True, np.float32(1), np.int8(1), np.array(1.0), np.bool_(True)])
def test_a_plain_function_may_return_any_real_number(value):
    assert Density(lambda x: value, dimension=D).evaluate(points([0])) == [1.0]


def test_errors_show_few_coordinates():
    p = Density(lambda x: np.nan, dimension=9)
    with pytest.raises(DomainError, match=r"x = \[0.0, 0.0, 0.0, 0.0, ... \(9 coordinates\)\]"):
        p.evaluate(np.zeros((9, 1)))


def test_memory_and_interruptions_pass_through():
    def stop(error):
        def function(x):
            raise error

        return function

    for error in (MemoryError("full"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            vectorized(stop(error)).evaluate(points([0]))
    with pytest.raises(MemoryError):
        vectorized(given.normal_vectorized, lambda rng, n: stop(MemoryError())(n)).draw(WORDS, 3)


# samplers


@pytest.mark.parametrize(
    ("sampler", "error", "said"),
    [(lambda rng, n: np.zeros((n, 2)), ShapeError, r"of shape \(n, dimension\), here \(64, 3\); got shape \(64, 2\)"),
     (lambda rng, n: np.zeros((n - 1, D)), ShapeError, r"got shape \(63, 3\) from '<lambda>'. Draw as many points"),
     (lambda rng, n: np.zeros((D, n)), ShapeError, r"got shape \(3, 64\)"),
     (lambda rng, n: np.zeros(n), ShapeError, r"got shape \(64,\)"),
     (lambda rng, n: np.zeros((n, D), complex), DomainError, "sampler must return real numbers; got an array of compl"),
     (lambda rng, n: None, DomainError, "sampler must return real numbers; got an array of object"),
     (lambda rng, n: np.full((n, D), np.inf), DomainError, "sampler must draw finite points; got inf in coordinate "
                                                           r"0 of draw 0 \(192 of 192 entries\)"),
     (lambda rng: 0.0, DomainError, r"sampler must draw 64 points; got TypeError: .*called as sampler\(rng, n\)"),
     (lambda rng, n: rng.no_such_law(n), DomainError, "sampler must draw 64 points; got AttributeError"),
     (lambda rng, n: np.random.standard_normal((n, D)), DomainError,  # noqa: NPY002
      r"sampler must draw from the rng it is given and from nothing else; got other points for the same rng from "
      r"'<lambda>' \(64 of 64 draws, first draw 0\). Replace np.random"),
     (lambda rng, n: np.random.default_rng(0).standard_normal((n, D)), DomainError,
      "sampler must draw from the rng it is given; got the same 64 points for two different rngs")],
)
def test_a_sampler_that_lies_is_found_out(sampler, error, said):
    with pytest.raises(error, match=said):
        vectorized(given.normal_vectorized, sampler).trial(WORDS)


def test_a_sampler_whose_points_rarely_differ_is_no_liar():
    p = Density(lambda x: np.log(np.where(x[:, 0] == 0, 0.999, 0.001)), lambda rng, n: rng.random(n) < 0.001,
                dimension=1, vectorized=True)
    p.trial(WORDS)
    with pytest.raises(DomainError, match="the same 64 points for two different rngs"):
        Density(p._arguments["log_density"], lambda rng, n: np.arange(n) % 2, dimension=1, vectorized=True).trial(WORDS)


def test_a_function_that_changes_from_call_to_call_is_found_out():
    state = np.random.default_rng(1)
    p = vectorized(lambda x: x[:, 0] + state.standard_normal(len(x)), given.normal_sampler)
    with pytest.raises(DomainError, match=r"log_density must be a function of the point alone; got .* and then .* at"):
        p.trial(WORDS)


@pytest.mark.slow
def test_a_sampler_outside_its_own_support_is_found_out(jitted):
    p = Density(given.cube_jitted, given.normal_sampler_jitted, dimension=D)
    with pytest.raises(DomainError, match="got -inf from 'cube_jitted' at point .*or the sampler if it leaves"):
        p.trial(WORDS)
    with pytest.raises(DomainError, match="got -inf from 'cube_jitted' at point"):
        p.trial(WORDS, jitted.draw(WORDS, 10))


def test_a_law_without_a_sampler_is_not_drawn_from():
    p = vectorized(given.normal_vectorized)
    assert not p.has_sampler
    with pytest.raises(DomainError, match="sampler must be given for a distribution that is sampled; got None"):
        p.draw(WORDS, 3)
    ratio = LogRatio(given.log_ratio_vectorized, given.shifted_sampler, dimension=D, vectorized=True)
    assert ratio.sides == ("p",)
    with pytest.raises(DomainError, match="sampler_q must be given where Q is drawn from; got None for LogRatio"):
        ratio.draw(WORDS, 3, "q")


# cost


def test_plain_python_names_its_price_once():
    p = Density(given.normal_plain, given.normal_sampler, dimension=D)
    with pytest.warns(SamplingWarning, match=r"log_density 'normal_plain' is plain Python, called once a sample: \d+ "
                                             r"ns a sample, one thread at a time. Decorate it"):
        p.trial(WORDS)
    p.trial(WORDS)  # a second warning would be an error here
    vectorized(given.normal_vectorized).trial(WORDS)
    with pytest.warns(SamplingWarning, match="log_ratio 'no_ratio' is plain Python"):
        LogRatio(lambda x: 0.0, given.normal_sampler, dimension=D, name="no_ratio").trial(WORDS)


# values in the sense of Python


def test_densities_are_values(jitted):
    same = Density(given.normal_jitted, given.normal_sampler_jitted, dimension=D)
    assert jitted == same
    assert hash(jitted) == hash(same)
    assert jitted != Density(given.normal_jitted, dimension=D)
    assert jitted != LogRatio(given.normal_jitted, given.normal_sampler_jitted, dimension=D)
    assert copy.copy(jitted) is jitted is copy.deepcopy(jitted)
    assert repr(jitted) == "Density('normal_jitted', dimension=3, jitted, with a sampler)"
    bare = Density(given.normal_plain, dimension=1, name="p")
    assert repr(bare) == "Density('p', dimension=1, plain, without a sampler)"
    ratio = LogRatio(given.hard, given.normal_sampler, dimension=D, sampler_q=given.normal_sampler)
    assert repr(ratio) == "LogRatio('hard', dimension=3, jitted, samples of P and Q)"
    with pytest.raises(AttributeError, match="Density is immutable; build a new one instead of setting dimension"):
        jitted.dimension = 2
    with pytest.raises(AttributeError, match="Density is immutable; build a new one instead of deleting dimension"):
        del jitted.dimension


@pytest.mark.parametrize(
    "make",
    [lambda: Density(given.normal_jitted, given.normal_sampler_jitted, dimension=D),
     lambda: vectorized(given.normal_vectorized, given.normal_sampler, name="normal"),
     lambda: LogRatio(given.log_ratio_vectorized, given.shifted_sampler, dimension=D, vectorized=True)],
    ids=["jitted", "vectorized", "ratio"],
)
def test_densities_are_pickled(make):
    law = make()
    twin = pickle.loads(pickle.dumps(law))
    assert twin == law
    assert twin.name == law.name
    x = law.draw(WORDS, 20)
    np.testing.assert_array_equal(twin.draw(WORDS, 20), x)
    np.testing.assert_array_equal(twin.evaluate(x), law.evaluate(x))


def test_too_many_draws_are_refused_before_they_are_made(jitted):
    with pytest.raises(MemoryError, match="size must fit in memory; got a need of"):
        jitted.sample(10**13)
    with pytest.raises(DomainError, match="size must be an integer of at least 0; got -1"):
        jitted.sample(-1)


def test_points_have_the_shape_of_the_law(jitted):
    with pytest.raises(ShapeError, match=r"x must be of shape \(n, 3\) or \(3,\); got \(2, 2\)"):
        jitted.log_density(np.zeros((2, 2)))
    ratio = LogRatio(lambda x: x[:, 0], given.poisson_sampler, dimension=1, vectorized=True)
    with pytest.raises(ShapeError, match=r"x must be of shape \(n,\) or \(n, 1\); got \(2, 2\)"):
        ratio.log_ratio(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="x must be made of finite numbers; got nan"):
        ratio.log_ratio(np.nan)
    assert jitted.log_density([0.0, 0.0, 0.0]) == given.NORMALISER
    np.testing.assert_array_equal(ratio.log_ratio([0.5, 1.5]), [0.5, 1.5])
    assert ratio.log_ratio(0.5) == 0.5
