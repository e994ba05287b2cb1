"""Times of events and of censoring as one number a sample: what shards, files and peers carry."""

from typing import Any

import numpy as np

from edgewise.errors import DataError


def survival_labels(time: Any, event: Any) -> np.ndarray:
    """(N,) the time where the event was seen, minus the time where it was not (censored).

    >>> survival_labels([5, 8, 12], [1, 0, 1])
    array([ 5., -8., 12.])
    """
    times, events = np.asarray(time), np.asarray(event)
    if times.ndim != 1 or times.shape != events.shape:
        raise DataError(
            f"times have shape {times.shape} and events {events.shape}: give one of each per sample"
        )
    if times.dtype.kind not in "iufb" or events.dtype.kind not in "iufb":
        raise DataError("times must be numbers, and events True and False, or 1 and 0")
    seen = events.astype(np.float64)
    if not np.isin(seen, (0.0, 1.0)).all():
        raise DataError("events must be True and False, or 1 (seen) and 0 (censored)")
    return checked(np.where(seen == 1, 1.0, -1.0) * checked(times.astype(np.float64)))


def checked(times: np.ndarray) -> np.ndarray:
    wrong = np.flatnonzero(~(np.isfinite(times) & (times != 0)))
    if len(wrong):
        raise DataError(
            f"sample {wrong[0]} has the time {times[wrong[0]]:g}: times must be finite and not "
            "zero; where somebody left on the first day, count days from one"
        )
    return times


def times_and_events(labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """(N,) times, and whether the event was seen: the inverse of `survival_labels`."""
    y = checked(np.asarray(labels, np.float64))
    return np.abs(y), y > 0


def as_labels(y: Any) -> np.ndarray:
    """(N,) labels, from themselves, (N, 2) columns of time and event, or a structured array with
    one field of times and one of booleans, as scikit-survival has it."""
    given = np.asarray(y)
    if given.dtype.names is not None:
        fields = [given[name] for name in given.dtype.names]
        if len(fields) != 2 or sum(f.dtype.kind == "b" for f in fields) != 1:
            raise DataError(
                f"y has fields {', '.join(given.dtype.names)}: give one of booleans (whether the "
                "event was seen) and one of times"
            )
        event, time = sorted(fields, key=lambda f: f.dtype.kind != "b")
        return survival_labels(time, event)
    if given.ndim == 2 and given.shape[1] == 2:
        return survival_labels(given[:, 0], given[:, 1])
    if given.ndim == 1:
        return checked(given.astype(np.float64)) if given.dtype.kind in "iuf" else refused(given)
    return refused(given)


def refused(y: np.ndarray) -> np.ndarray:
    raise DataError(
        f"y has shape {y.shape} and dtype {y.dtype}: give two columns, time and event, or "
        "edgewise.survival_labels(time, event)"
    )
