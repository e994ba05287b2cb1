"""Which fit a checkpoint is of, part by part, so that one can say what has changed since.

When a fit ends may change between two starts of a peer: it goes on from its checkpoint.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from edgewise.errors import CheckpointError
from edgewise.peers.config.peer_config import Fit

ENDS = ("rounds", "tol", "seconds")
MAX_SHOWN = 200  # letters
KEPT_BY_DIGEST = ("data", "costs")  # which say nothing of what they are of
Identity = dict[str, Any]


def identity_of(agreed: Mapping[str, Any], **own: Any) -> Identity:
    """What all peers agree on but for the ends, and what is this peer's own, as JSON has it."""
    fit = {name: value for name, value in agreed.items() if name not in ENDS}
    if agreed.get("dp_epsilon") is not None:  # what noise is made for
        fit["private_rounds"] = min(agreed["rounds"], agreed["dp_rounds"])
    return dict(json.loads(json.dumps({**fit, **own})))


def ends_of(fit: Fit) -> dict[str, Any]:
    return {name: getattr(fit, name) for name in ENDS}


def digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def require_same(saved: Any, now: Identity, path: Any) -> None:
    if saved == now:
        return
    raise CheckpointError(
        f"{path} is of another fit{what_differs(saved, now)}: delete it, or give another folder as "
        "out"
    )


def what_differs(saved: Any, now: Identity) -> str:
    if not isinstance(saved, dict):
        return ", of an older version of Edgewise"
    for name in {**now, **saved}:
        before, after = saved.get(name), now.get(name)
        if before != after:
            if name in KEPT_BY_DIGEST:
                return f", of other {name}"
            return f", with {name} = {shown(before)}, and here {shown(after)}"
    return ""


def shown(value: Any) -> str:
    """What somebody else chose, for a line of the log."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
