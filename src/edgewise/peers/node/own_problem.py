"""The problem of one peer, from its configuration and its own data alone."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise import spec
from edgewise.data.readers import load as load_samples
from edgewise.errors import DataError
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.problem.problem import Problem


def one_node(config: PeerConfig, shard: Any) -> Problem:
    """shard: a file, or (X, y). Classes are the configuration's: a peer may see some only."""
    fit = config.fit
    if isinstance(shard, str | PathLike):
        X, y = load_samples(Path(shard), fit.features)
    else:
        X, y = shard
    y = np.asarray(y)
    loss = spec.loss(fit.loss, fit.ridge)
    penalty = spec.penalty(list(config.penalty), 1)
    if fit.classes is None:
        return Problem([(X, y)], loss, penalty, intercept=fit.intercept)
    classes = np.array(fit.classes)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise DataError(f"label {unknown[0]!r} is none of the classes {list(fit.classes)}")
    # A second node that has all classes, for the labels to be numbered as everywhere, and go again.
    empty = sp.csr_array if sp.issparse(X) else np.zeros
    other = empty((len(classes), X.shape[1]), dtype=X.dtype)
    both = Problem([(X, y), (other, classes)], loss, [penalty, None], intercept=fit.intercept)
    return both.only([0])
