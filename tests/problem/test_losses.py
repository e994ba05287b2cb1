"""A loss's slope, divergence and curvature agree with its value; labels become numbers."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from catalogue import slopes, values
from numpy.testing import assert_allclose, assert_array_equal

import edgewise as ew
from edgewise.errors import DataError, ProblemError

CLASSES = 4
TWO_SIDED = {
    "logistic": ew.Logistic(),
    "hinge": ew.SmoothedHinge(width=0.5),
    "hinge-wide": ew.SmoothedHinge(width=2.0),
}
REAL = {"squared": ew.Squared(), "huber": ew.Huber(), "huber-narrow": ew.Huber(delta=0.3)}
LOSSES = {**TWO_SIDED, **REAL, "multinomial": ew.Multinomial(outputs=CLASSES)}


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


def draw(loss, count=400, seed=0, scale=3.0):
    """Margins and labels, (count,) or (count, C) and (count,)."""
    rng = np.random.default_rng(seed)
    if isinstance(loss, ew.Multinomial):
        return scale * rng.normal(size=(count, CLASSES)), rng.integers(0, CLASSES, count)
    z = scale * rng.normal(size=count)
    if loss in REAL.values():
        return z, rng.normal(size=count)
    return z, rng.choice([-1, 1], count)


def test_value_is_the_formula(loss):
    z, y = draw(loss)
    assert_allclose(loss.value(jnp.asarray(z), jnp.asarray(y, float)), values(loss, z, y), 1e-12)
    assert_allclose(
        loss.slope(jnp.asarray(z), jnp.asarray(y, float)), slopes(loss, z, y), 1e-12, atol=1e-15
    )


def test_slope_is_the_derivative_of_the_value(loss):
    z, y = (jnp.asarray(a, float) for a in draw(loss))
    automatic = jax.grad(lambda z: loss.value(z, y).sum())(z)
    assert_allclose(loss.slope(z, y), automatic, rtol=1e-10, atol=1e-14)
    way = jnp.asarray(np.random.default_rng(1).normal(size=z.shape))
    h = 1e-6
    difference = (loss.value(z + h * way, y) - loss.value(z - h * way, y)) / (2 * h)
    along = loss.slope(z, y) * way
    along = along.sum(-1) if along.ndim > 1 else along
    assert_allclose(along, difference, atol=3e-6)  # kinks in the slope: h times its curvature


def test_far_margins_stay_finite(loss):
    """Where exp overflows and where probabilities round to one; the textbook formula is good."""
    far = np.array([1e4, -1e4, 40.0, -40.0, 800.0, 0.0])
    z, y = far, np.array([1, -1, 1, -1, -1, 1])
    if isinstance(loss, ew.Multinomial):
        z, y = np.stack([far, far[::-1], 0 * far, -far], 1), np.array([0, 1, 2, 3, 0, 1])
    for at in (-z, 0 * z, z + 1):
        found = [f(jnp.asarray(z), jnp.asarray(y, float)) for f in (loss.value, loss.slope)]
        assert_allclose(found[0], values(loss, z, y), rtol=1e-12, atol=1e-15)
        assert_allclose(found[1], slopes(loss, z, y), rtol=1e-12, atol=1e-15)
        divergence = loss.divergence(jnp.asarray(z), jnp.asarray(y, float), jnp.asarray(at))
        assert_allclose(divergence, textbook(loss, z, y, at), rtol=1e-9, atol=1e-8)


def textbook(loss, z, y, at):
    along = slopes(loss, at, y) * (z - at)
    along = along.sum(-1) if along.ndim > 1 else along
    return values(loss, z, y) - values(loss, at, y) - along


def test_divergence_is_the_textbook_formula(loss):
    z, y = draw(loss)
    at = draw(loss, seed=9)[0]
    found = loss.divergence(jnp.asarray(z), jnp.asarray(y, float), jnp.asarray(at))
    assert_allclose(found, textbook(loss, z, y, at), rtol=1e-9, atol=1e-12)
    assert (np.asarray(found) >= -1e-15).all()


def test_divergence_from_itself_is_zero(loss):
    z, y = draw(loss)
    assert_allclose(loss.divergence(jnp.asarray(z), jnp.asarray(y, float), jnp.asarray(z)), 0)


def decimal_divergence(z, y, at):
    """Of the logistic loss, to fifty digits."""
    with localcontext() as context:
        context.prec = 80
        z, y, at = (Decimal(float(a)) for a in (z, y, at))
        value = [(1 + (-y * m).exp()).ln() for m in (z, at)]
        slope = -y / (1 + (y * at).exp())
        return float(value[0] - value[1] - slope * (z - at))


@pytest.mark.parametrize("step", [1e-12, 1e-8, 1e-6, 0.99e-4, 1.01e-4, 1e-3, 0.1, 3.0, 30.0])
@pytest.mark.parametrize("at", [-20.0, -3.0, 0.0, 0.7, 9.0])
def test_logistic_divergence_loses_no_digits(step, at):
    """To the rounding of the step itself, also where the textbook formula has no digit left
    (1e-24 against 1e-16), and on both sides of where the series takes over."""
    for y in (-1.0, 1.0):
        for way in (-1, 1):
            z = at + way * step
            found = float(ew.Logistic().divergence(jnp.asarray(z), jnp.asarray(y), jnp.asarray(at)))
            assert_allclose(found, decimal_divergence(z, y, at), rtol=1e-7, atol=3e-16 * step)


def test_squared_divergence_loses_no_digits():
    at = 0.3
    for step in (1e-14, 1e-9, 1e-3):
        found = ew.Squared().divergence(jnp.asarray(at + step), jnp.asarray(5.0), jnp.asarray(at))
        assert_allclose(float(found), ((at + step) - at) ** 2 / 2, rtol=1e-12)


@pytest.mark.parametrize("name", ["huber", "hinge", "multinomial"])
def test_other_divergences_have_rounding_only(name):
    loss = LOSSES[name]
    at, y = draw(loss, scale=1.0)
    z = at + 1e-9
    found = np.asarray(loss.divergence(jnp.asarray(z), jnp.asarray(y, float), jnp.asarray(at)))
    assert np.abs(found).max() < 1e-14


def second_derivatives(loss, z, y):
    """The largest eigenvalue of the second derivative at each margin."""

    def one(z, y):
        bend = jax.jacfwd(lambda m: loss.slope(m, y))(z)
        return bend if bend.ndim == 0 else jnp.linalg.eigvalsh(bend)[-1]

    return np.asarray(jax.vmap(one)(jnp.asarray(z), jnp.asarray(y, float)))


def test_curvature_bounds_the_second_derivative_and_is_attained(loss):
    z, y = draw(loss, count=3000, scale=1.0)
    if isinstance(loss, ew.Multinomial):  # two classes level and the others far behind
        z[:500, :2], z[:500, 2:] = 0, -30
    bend = second_derivatives(loss, z, y)
    assert bend.max() <= loss.curvature() * (1 + 1e-12)
    assert bend.max() >= 0.98 * loss.curvature()


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [ew.Logistic(), ew.SmoothedHinge()])
@pytest.mark.parametrize(
    "y",
    [[0, 1, 1, 0], [3, 7, 7, 3], ["benign", "malignant", "malignant", "benign"], [-1, 1, 1, -1]],
)
def test_two_labels_become_signs(loss, y):
    codes, classes = loss.encode(np.array(y))
    assert_array_equal(codes, [-1, 1, 1, -1])
    assert_array_equal(classes, sorted(set(y)))
    assert codes.dtype == np.float64


def test_bool_labels():
    assert_array_equal(ew.Logistic().encode(np.array([True, False]))[0], [1, -1])
    assert_array_equal(ew.Squared().encode(np.array([True, False]))[0], [1, 0])


def test_classes_become_numbers():
    codes, classes = ew.Multinomial().encode(np.array(["b", "c", "a", "c"]))
    assert_array_equal(codes, [1, 2, 0, 2])
    assert_array_equal(classes, ["a", "b", "c"])


@pytest.mark.parametrize("loss", [ew.Squared(), ew.Huber(), ew.CustomLoss(lambda x, d, y: 0.0)])
def test_numbers_stay_numbers(loss):
    codes, classes = loss.encode(np.array([3, 1, -2], np.int32))
    assert_array_equal(codes, [3.0, 1.0, -2.0])
    assert codes.dtype == np.float64
    assert classes is None


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [ew.Logistic(), ew.SmoothedHinge()])
def test_one_class_is_refused(loss):
    with pytest.raises(DataError, match=r"all labels are .*1.*needs two classes over all nodes"):
        loss.encode(np.array([1, 1, 1]))


@pytest.mark.parametrize("loss", [ew.Logistic(), ew.SmoothedHinge()])
def test_three_classes_are_refused(loss):
    with pytest.raises(DataError, match="the labels have 3: use Multinomial"):
        loss.encode(np.array([1, 2, 3]))


def test_one_class_is_refused_by_multinomial():
    with pytest.raises(DataError, match=r"all labels are .*Multinomial needs more"):
        ew.Multinomial().encode(np.array([2, 2]))


@pytest.mark.parametrize("loss", [ew.Squared(), ew.Huber(), ew.CustomLoss(lambda x, d, y: 0.0)])
def test_text_is_refused_where_numbers_are_needed(loss):
    with pytest.raises(DataError, match=f"{type(loss).__name__} needs numbers as labels"):
        loss.encode(np.array(["a", "b"]))


@pytest.mark.parametrize(
    "kind", [ew.Logistic, ew.Squared, ew.Huber, ew.SmoothedHinge, ew.Multinomial]
)
@pytest.mark.parametrize("ridge", [-1.0, -1, float("inf"), float("nan")])
def test_ridge_must_be_a_number_from_zero_up(kind, ridge):
    with pytest.raises(ProblemError, match=r"ridge=.*give a finite number, zero or more"):
        kind(ridge=ridge)


def test_ridge_of_a_custom_loss_too():
    with pytest.raises(ProblemError, match=r"CustomLoss\(ridge=-1\): give a finite number"):
        ew.CustomLoss(lambda x, d, y: 0.0, ridge=-1)


@pytest.mark.parametrize(("kind", "name"), [(ew.Huber, "delta"), (ew.SmoothedHinge, "width")])
def test_widths_must_be_positive(kind, name):
    with pytest.raises(ProblemError, match=f"{name}=0.*give a positive {name}"):
        kind(**{name: 0})
    with pytest.raises(ProblemError, match=f"{name}=-0.5.*give a finite number"):
        kind(**{name: -0.5})


@pytest.mark.parametrize("smoothness", [0, -2.0, float("nan")])
def test_smoothness_must_be_positive(smoothness):
    with pytest.raises(ProblemError, match=r"CustomLoss\(smoothness=.*give a positive number"):
        ew.CustomLoss(lambda x, d, y: 0.0, smoothness=smoothness)
