"""The loss of one sample, its slope, and how curved it can be.

A generalised linear loss is a function of the margin z = <d, x> (plus an intercept) and the label:
`value(z, y)` and `slope(z, y)` = d value / d z, so that a sample's gradient is slope * d and one
number per sample is all that a gradient memory has to keep. `curvature` bounds the slope's
derivative. Each also carries `ridge`: (ridge / 2) |x|^2 is part of the smooth loss, as in the
paper's experiments, and never touches an intercept.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import DataError, ProblemError, whole_number
from edgewise.problem.contract import Labels, LinearLoss, SampleLoss
from edgewise.problem.likelihoods import Gaussian, Signed
from edgewise.problem.pytree_model import OfPytree, PytreeModel


def require_not_negative(owner: object, **numbers: Any) -> None:
    for name, value in numbers.items():
        if isinstance(value, jax.core.Tracer):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not 0 <= number < float("inf"):
            kind = type(owner).__name__
            raise ProblemError(f"{kind}({name}={value!r}): give a finite number, zero or more")
        object.__setattr__(owner, name, number)


def two_classes(y: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    classes = np.unique(y)
    if len(classes) < 2:
        raise DataError(
            f"all labels are {classes[0].item()!r}: {kind} needs two classes over all nodes "
            "together (a single node may have one)"
        )
    if len(classes) > 2:
        raise DataError(
            f"{kind} takes two classes, the labels have {len(classes)}: use Multinomial for "
            "classes, Squared or Huber for numbers"
        )
    return np.where(y == classes[1], 1.0, -1.0), classes


def numbers(y: np.ndarray, kind: str) -> tuple[np.ndarray, None]:
    if not (np.issubdtype(y.dtype, np.number) or y.dtype == bool):
        raise DataError(f"{kind} needs numbers as labels, got dtype {y.dtype}")
    return np.asarray(y, np.float64), None


class Linear:
    """What the generalised linear losses share."""

    linear: ClassVar[Literal[True]] = True
    hessian_continuous: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True  # whether the slope's derivative is bounded over all margins
    saturates: ClassVar[bool] = False  # whether it is near that bound at small margins alone
    steepest: ClassVar[Any] = float("inf")  # how large a slope may be, for any margin and label
    outputs: int = 1
    ridge: Any

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge)

    def value(self, z: Array, y: Array) -> Array:
        raise NotImplementedError

    def slope(self, z: Array, y: Array) -> Array:
        raise NotImplementedError

    def curvature(self) -> float:
        raise NotImplementedError

    def curvatures(self, y: np.ndarray) -> np.ndarray:
        """(N,) bounds on the slope's derivative for these labels; where it has none, its size at
        margins that are right for them: a unit to measure by, and no step."""
        return np.full(len(y), self.curvature())

    def hessian(self, z: Array, y: Array) -> Array:
        """d slope / d z, of a loss with one output."""
        return jax.jvp(lambda a: self.slope(a, y), (z,), (jnp.ones_like(z),))[1]

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        """Bregman divergence of the loss from margin `at` to z."""
        along = self.slope(at, y) * (z - at)
        along = along.sum(-1) if along.ndim > y.ndim else along
        return self.value(z, y) - self.value(at, y) - along


@pytree()
class Logistic(Signed, Linear):
    """log(1 + exp(-y z)), labels -1 and 1 (any two labels are mapped, the larger one to 1)."""

    compiled_as = "logistic"

    saturates: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0
    ridge: Any = 0.0

    def value(self, z: Array, y: Array) -> Array:
        return jax.nn.softplus(-y * z)

    def slope(self, z: Array, y: Array) -> Array:
        return -y * jax.nn.sigmoid(-y * z)

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        """As for every loss, but without losing digits near zero or far out."""
        p, q = jax.nn.sigmoid(at), jax.nn.sigmoid(-at)  # the same for either label
        step, far = z - at, jnp.abs(z - at)
        odds, toward = jnp.where(step > 0, q, p), jnp.where(step > 0, at, -at)
        series = p * q * step**2 * (0.5 + (q - p) * step / 6)
        middle = jnp.log1p(odds * jnp.expm1(-far))
        wide = jnp.logaddexp(jax.nn.log_sigmoid(toward), jax.nn.log_sigmoid(-toward) - far)
        rise = jnp.where((far > 1) & (odds > 0.5), wide, middle) + odds * far
        return jnp.where(far < 1e-4, series, rise)

    def curvature(self) -> float:
        return 0.25

    def encode(self, y: np.ndarray) -> Labels:
        return two_classes(y, "Logistic")


@pytree()
class Squared(Gaussian, Linear):
    """(z - y)^2 / 2."""

    compiled_as = "squared"

    ridge: Any = 0.0

    def value(self, z: Array, y: Array) -> Array:
        return 0.5 * (z - y) ** 2

    def slope(self, z: Array, y: Array) -> Array:
        return z - y

    def divergence(self, z: Array, y: Array, at: Array) -> Array:
        return 0.5 * (z - at) ** 2

    def curvature(self) -> float:
        return 1.0

    def encode(self, y: np.ndarray) -> Labels:
        return numbers(y, "Squared")


@pytree()
class Huber(Linear):
    """r^2 / 2 where |r| <= delta, else delta |r| - delta^2 / 2, with r = z - y."""

    compiled_as = "huber"

    delta: Any = 1.0
    hessian_continuous: ClassVar[bool] = False
    steepest = property(lambda self: float(self.delta))
    ridge: Any = 0.0

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge, delta=self.delta)
        if isinstance(self.delta, float) and self.delta == 0:
            raise ProblemError("Huber(delta=0) is flat: give a positive delta")

    def value(self, z: Array, y: Array) -> Array:
        near = jnp.clip(z - y, -self.delta, self.delta)
        return near * (z - y) - 0.5 * near**2

    def slope(self, z: Array, y: Array) -> Array:
        return jnp.clip(z - y, -self.delta, self.delta)

    def secant(self, z: Array, y: Array) -> Array:
        """The second derivative of the parabola that lies above the loss and touches it at z."""
        return self.delta / jnp.maximum(jnp.abs(z - y), self.delta)

    def curvature(self) -> float:
        return 1.0

    def encode(self, y: np.ndarray) -> Labels:
        return numbers(y, "Huber")


@pytree()
class SmoothedHinge(Linear):
    """The hinge max(0, 1 - y z), its corner rounded by a parabola of the given width."""

    compiled_as = "smoothed-hinge"

    width: Any = 0.5
    hessian_continuous: ClassVar[bool] = False
    steepest: ClassVar[float] = 1.0
    ridge: Any = 0.0

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge, width=self.width)
        if isinstance(self.width, float) and self.width == 0:
            raise ProblemError("SmoothedHinge(width=0) is not smooth: give a positive width")

    def value(self, z: Array, y: Array) -> Array:
        short = jnp.maximum(1 - y * z, 0)
        near = jnp.minimum(short, self.width)
        return near * (short - 0.5 * near) / self.width

    def slope(self, z: Array, y: Array) -> Array:
        return -y * jnp.clip(1 - y * z, 0, self.width) / self.width

    def secant(self, z: Array, y: Array) -> Array:
        """As Huber's: this is one about the middle of the corner, and a straight line."""
        return 1 / jnp.maximum(2 * jnp.abs(1 - y * z - self.width / 2), self.width)

    def curvature(self) -> float:
        return 1.0 / float(self.width)

    def encode(self, y: np.ndarray) -> Labels:
        return two_classes(y, "SmoothedHinge")


@pytree()
class Sigmoid(Linear):
    """1 / (1 + exp(y z)), the smooth 0-1 loss: of bounded influence, and not convex.

    No sample costs more than 1, and one far on the wrong side no longer pulls: outliers with wrong
    labels bear less on the model than on Logistic's. For labels that were wrong at random it did
    not make up (docs/beyond.md). Runs end at a stationary point, which depends on where they began
    (Mason, Baxter, Bartlett, Frean 2000; Nguyen, Sanner 2013). A sample's slope has at most the
    curvature 1 / (6 sqrt 3), of either sign.
    """

    convex: ClassVar[bool] = False
    saturates: ClassVar[bool] = True
    steepest: ClassVar[float] = 0.25
    ridge: Any = 0.0

    def value(self, z: Array, y: Array) -> Array:
        return jax.nn.sigmoid(-y * z)

    def slope(self, z: Array, y: Array) -> Array:
        return -y * jax.nn.sigmoid(z) * jax.nn.sigmoid(-z)

    def curvature(self) -> float:
        return float(1 / (6 * np.sqrt(3)))

    def encode(self, y: np.ndarray) -> Labels:
        return two_classes(y, "Sigmoid")


@pytree("outputs")
class Multinomial(Linear):
    """log(sum_c exp z_c) - z_y over C classes; the model is C rows of weights, flattened."""

    saturates: ClassVar[bool] = True
    steepest: ClassVar[float] = float(np.sqrt(2))
    ridge: Any = 0.0
    outputs: int = 0  # C, which Problem fills in from the labels

    def value(self, z: Array, y: Array) -> Array:
        picked = jnp.take_along_axis(z, y[..., None].astype(jnp.int32), -1)[..., 0]
        return jax.nn.logsumexp(z, -1) - picked

    def slope(self, z: Array, y: Array) -> Array:
        own = y[..., None] == jnp.arange(z.shape[-1])
        return jax.nn.softmax(z, -1) - own.astype(z.dtype)

    def curvature(self) -> float:
        return 0.5

    def encode(self, y: np.ndarray) -> Labels:
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"all labels are {classes[0].item()!r}: Multinomial needs more")
        return codes.astype(np.float64), classes


@pytree("fn", "smoothness", "size", "convex")
class CustomLoss:
    """Any JAX-differentiable loss of one sample: `fn(x, d, y)` with model x, features d, label y.

    `smoothness` is the Lipschitz constant of its gradient in x; where it is not given it is
    estimated by power iteration on the curvature of sampled losses at random points, which is a
    guess for losses whose curvature grows. `size` is the length of x (default: that of d). Say
    convex=False where it is not: `solve` then chooses and speaks accordingly. Where the model is a
    pytree of arrays, such as a neural network's, take `CustomLoss.of_pytree`. Gradient memories
    hold whole gradients: prefer SVRG, L-SVRG or PAGE to SAGA for large models.
    """

    fn: Callable[[Array, Array, Array], Array]
    smoothness: float | None = None
    size: int | None = None
    ridge: Any = 0.0
    convex: bool = True
    linear: ClassVar[Literal[False]] = False
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge)
        if not callable(self.fn):
            raise ProblemError(f"CustomLoss({self.fn!r}): give a function fn(x, d, y)")
        if self.smoothness is not None:
            given = self.smoothness
            if not isinstance(given, Real) or not 0 < float(given) < float("inf"):
                raise ProblemError(f"CustomLoss(smoothness={given!r}): give a positive number")
        if self.size is not None:
            whole_number("CustomLoss's size", self.size, 1, ProblemError)
        if not isinstance(self.convex, bool):
            raise ProblemError(f"CustomLoss(convex={self.convex!r}): give True or False")

    @classmethod
    def of_pytree(
        cls,
        fn: Callable[[Any, Array, Array], Array],
        like: Any,
        smoothness: float | None = None,
        ridge: Any = 0.0,
        convex: bool = False,
    ) -> "CustomLoss":
        """`fn(params, d, y)` of a model that is a pytree of arrays, shaped as those of `like`.

        Models of `solve` are vectors: `loss.flatten(params)` makes one, for X0, and
        `loss.unflatten(result.x)` gives the pytree back.

        >>> like = {"w": np.zeros((3, 2)), "b": np.zeros(2)}
        >>> def fn(params, d, y):
        ...     return ((d @ params["w"] + params["b"]).sum() - y) ** 2
        >>> loss = edgewise.CustomLoss.of_pytree(fn, like)
        >>> loss.size
        8
        >>> loss.unflatten(loss.flatten({"w": np.ones((3, 2)), "b": np.array([2.0, 3.0])}))["b"]
        array([2., 3.])
        """
        model = PytreeModel.like(like)
        return cls(OfPytree(fn, model), smoothness, model.size, ridge, convex)

    def flatten(self, params: Any) -> np.ndarray:
        """(n,) the vector of a pytree of parameters."""
        return self._model().flatten(params)

    def unflatten(self, x: Any) -> Any:
        """The pytree of a vector of parameters (n,)."""
        return self._model().unflatten(x)

    def _model(self) -> PytreeModel:
        if not isinstance(self.fn, OfPytree):
            raise ProblemError("this loss takes vectors: make it by CustomLoss.of_pytree(fn, like)")
        return self.fn.model

    def encode(self, y: np.ndarray) -> Labels:
        return numbers(y, "CustomLoss")


# held to the contract by mypy
LINEAR_LOSSES: tuple[type[LinearLoss], ...] = (
    Logistic,
    Squared,
    Huber,
    SmoothedHinge,
    Sigmoid,
    Multinomial,
)
SAMPLE_LOSSES: tuple[type[SampleLoss], ...] = (CustomLoss,)
