"""The problem of one peer, from its configuration and its own data alone."""

from os import PathLike
from pathlib import Path
from typing import Any

from edgewise import spec
from edgewise.data.readers import load as load_samples
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.problem.problem import Problem


def one_node(config: PeerConfig, shard: Any) -> Problem:
    """shard: a file, or (X, y). Classes are the configuration's: a peer may see some only."""
    fit = config.fit
    if isinstance(shard, str | PathLike):
        X, y = load_samples(Path(shard), fit.features)
    else:
        X, y = shard
    loss = spec.loss(fit.loss, fit.ridge)
    penalty = spec.penalty(list(config.penalty), 1)
    return Problem([(X, y)], loss, penalty, intercept=fit.intercept, classes=fit.classes)
