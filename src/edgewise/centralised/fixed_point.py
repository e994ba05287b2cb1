"""Fixed points of averaged maps, to the last digit."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, lu_factor, lu_solve

MEMORY = 15  # steps that Anderson's acceleration looks back on
NEWTON_EVERY = 20  # other steps between two attempts at Newton's
SLOW = 0.1  # what a Newton step must leave at most, for the next to go by the same Jacobian
PATIENCE = 1000  # steps without progress after which rounding is taken to be reached
NEWTONS_LAST = 3  # attempts at Newton's without progress that say so too
SINGULAR = 1e-13  # added to what may have no inverse: columns that repeat, intercepts of classes

Vector = np.ndarray
Factors = tuple[Vector, Vector]


def fixed_point(
    displacement: Callable[[Vector], Vector],
    jacobian: Callable[[Vector], Vector | None],
    merit: Callable[[Vector], float],
    size: Callable[[Vector], float],
    accelerate: "NesterovMomentum | Anderson",
    z: Vector,
    tol: float,
    iterations: int,
) -> tuple[Vector, int]:
    """z with size(displacement(z)) <= tol, or the best there is, and the steps that it took.

    Between attempts at semismooth Newton steps, steps of the plain map z + displacement(z) are
    taken, accelerated. A Newton step must make `merit`, which is least at the solution, clearly
    smaller, or the displacement smaller and merit no larger: far out, where everything is flat,
    the displacement alone would lead astray.
    """
    move = displacement(z)
    best, best_z, stuck, due, failed = np.inf, z, 0, 0, 0
    J: Factors | None = None
    near = 1e-6 * size(move)  # or a few roundings of z itself, below
    for k in range(iterations):
        now = size(move)
        stuck = 0 if now < 0.999 * best else stuck + 1
        if now < best:
            best, best_z = now, z
        if best <= tol:
            return (best_z if J is None else last_digits(displacement, size, J, z, move)), k
        close = best < max(near, 1e-14 * size(z))
        if (stuck > PATIENCE and close) or (failed >= NEWTONS_LAST and best < 100 * tol):
            return best_z, k
        found = None
        if k >= due:
            J = factors(jacobian(z)) if J is None else J
            found = None if J is None else newton(displacement, merit, size, J, z, move)
            due = iterations if J is None else k + (1 if found else NEWTON_EVERY)
            failed = 0 if found else failed + 1
            if found is None or size(found[1]) > SLOW * now:
                J = None
        if found:
            accelerate.forget()
        z, move = found or accelerate.step(z, move, displacement)
    return best_z, iterations


def newton(
    displacement: Callable[[Vector], Vector],
    merit: Callable[[Vector], float],
    size: Callable[[Vector], float],
    J: Factors,
    z: Vector,
    move: Vector,
) -> tuple[Vector, Vector] | None:
    """Newton's step on the displacement, or a shorter one, or None where none is good."""
    step = lu_solve(J, -move)
    height = merit(z)
    for damping in (1.0, 0.3, 0.1, 0.03, 0.01):
        new = z + damping * step
        new_move = displacement(new)
        smaller = size(new_move) < 0.9 * size(move)
        drop = (height - merit(new)) / (abs(height) + 1e-300)
        if drop > 1e-8 or (smaller and drop >= -1e-13):
            return new, new_move
    return None


def last_digits(
    displacement: Callable[[Vector], Vector],
    size: Callable[[Vector], float],
    J: Factors,
    z: Vector,
    move: Vector,
) -> Vector:
    """One more step, by the last Jacobian: a small displacement may be a long way from the solution
    along a flat direction, and Newton's step knows how long."""
    new = z + lu_solve(J, -move)
    return new if size(displacement(new)) <= size(move) else z


def factors(J: Vector | None) -> Factors | None:
    """What its inverse is applied with; None where there is none."""
    if J is None or not np.isfinite(J).all():
        return None
    J[np.diag_indices_from(J)] -= SINGULAR  # of a non-expansive map less one: away from zero
    try:
        return lu_factor(J, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None


class NesterovMomentum:
    """Nesterov's, restarted where it points uphill (O'Donoghue, Candes 2015): for proximal
    gradient steps."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.before: Vector | None = None
        self.t = 1.0

    def step(
        self, z: Vector, move: Vector, displacement: Callable[[Vector], Vector]
    ) -> tuple[Vector, Vector]:
        here = z + move
        ahead = here
        if self.before is not None:
            along = here - self.before
            if along @ move < 0:
                self.t = 1.0
            t = 0.5 * (1 + np.sqrt(1 + 4 * self.t**2))
            ahead = here + (self.t - 1) / t * along
            self.t = t
        self.before = here
        return ahead, displacement(ahead)


class Anderson:
    """From a linear model of the displacement over past steps, taken only where the displacement
    falls: for any averaged map, whose own steps never let it grow."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.steps: list[Vector] = []
        self.changes: list[Vector] = []

    def step(
        self, z: Vector, move: Vector, displacement: Callable[[Vector], Vector]
    ) -> tuple[Vector, Vector]:
        new = z + move
        if self.steps:
            A = np.stack(self.changes, 1)
            scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
            mix = np.linalg.lstsq(A / scale, move, rcond=1e-10)[0] / scale
            new = new - (np.stack(self.steps, 1) + A) @ mix
        new_move = displacement(new)
        if self.steps and not np.linalg.norm(new_move) < np.linalg.norm(move):
            new = z + move
            new_move = displacement(new)
        self.steps = [*self.steps[1 - MEMORY :], new - z]
        self.changes = [*self.changes[1 - MEMORY :], new_move - move]
        return new, new_move
