"""What may be said about a peer and a fit, key by key."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from edgewise.errors import InputError, UnknownName
from edgewise.peers.config.addresses import EXAMPLES, is_address

MESH = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")  # with peer's id it must fit 64 letters


class Rule(NamedTuple):
    fits: Callable[[Any], bool]
    give: str
    made: Callable[[Any], Any] = lambda value: value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_whole(value: Any, least: int, most: int = 2**63 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def are_classes(value: Any) -> bool:
    """Labels of one kind, as a set has them in its file: all numbers or all texts, none twice."""
    if not isinstance(value, list | tuple):
        return False
    alike = all(map(is_number, value)) or all(isinstance(label, str) for label in value)
    return alike and len(set(value)) == len(value) >= 2


def whole(least: int) -> Rule:
    return Rule(lambda value: is_whole(value, least), f"a whole number from {least} up")


def one_of(*words: str) -> Rule:
    return Rule(lambda value: value in words, " or ".join(words))


TEXT = Rule(is_text, "a text")
TEXTS = Rule(
    lambda value: isinstance(value, list | tuple) and all(map(is_text, value)),
    "a list of texts",
    tuple,
)
TRUTH = Rule(lambda value: isinstance(value, bool), "true or false")
POSITIVE = Rule(lambda value: is_number(value) and value > 0, "a positive number", float)
NOT_NEGATIVE = Rule(lambda value: is_number(value) and value >= 0, "a number from 0 up", float)
STEP = Rule(
    lambda value: value in ("auto", "theory") or (is_number(value) and value > 0),
    "auto, theory, or one positive number for all peers",
    lambda value: value if isinstance(value, str) else float(value),
)
PRECISION = one_of("float32", "float64")
REACHED_AT = Rule(is_address, EXAMPLES)
METRICS = Rule(
    lambda value: value is False or is_address(value, least_port=0),
    "HOST:PORT, with port 0 for any that is free, or false",
    lambda value: value or None,
)

FIT = {
    "method": TEXT,
    "set": TEXTS,
    "loss": TEXT,
    "weights": one_of("sample", "node"),
    "standardize": TRUTH,
    "holdout": Rule(lambda value: is_number(value) and 0 < value < 1, "a part, as 0.2", float),
    "masked": TRUTH,
    "summary": one_of("auto", "model", "HC0", "HC1", "cluster"),
    "offset": TEXT,
    "exposure": TEXT,
    "case_weight": TEXT,
    "trials": TEXT,
    "ridge": NOT_NEGATIVE,
    "intercept": TRUTH,
    "classes": Rule(are_classes, "two labels or more, all numbers or all texts, none twice", tuple),
    "features": whole(1),
    "rounds": whole(1),
    "seconds": POSITIVE,
    "tol": POSITIVE,
    "seed": whole(0),
    "eta": STEP,
    "rho": STEP,
    "dtype": PRECISION,
    "wire": PRECISION,
    "bits": Rule(lambda value: is_whole(value, 2, 32), "a whole number from 2 to 32"),
    "dual_noise": NOT_NEGATIVE,
    "dp_epsilon": POSITIVE,
    "dp_delta": Rule(lambda value: is_number(value) and 0 < value < 0.1, "below 0.1", float),
    "dp_clip": POSITIVE,
    "dp_row_norm": POSITIVE,
    "dp_rounds": whole(1),
    "mode": one_of("tolerant", "strict"),
    "patience": POSITIVE,
}
RELAY = Rule(
    lambda value: value is False or is_address(value),
    "HOST:PORT of a relay, or false",
    lambda value: value or None,
)
NEIGHBOUR = {"id": whole(0), "address": REACHED_AT, "dial": TRUTH, "relay": RELAY}
PEER = {
    "mesh": Rule(
        lambda value: isinstance(value, str) and MESH.fullmatch(value) is not None,
        "at most 40 small letters, digits and hyphens",
    ),
    "id": Rule(lambda value: is_whole(value, 0, 10**9 - 1), "a whole number from 0 up"),
    "nodes": whole(1),
    "listen": REACHED_AT,
    "authority": TEXT,
    "certificate": TEXT,
    "key": TEXT,
    "out": TEXT,
    "penalty": TEXTS,
    "checkpoint_every": whole(1),
    "record_every": whole(1),
    "drop_after": POSITIVE,
    "least_count": whole(1),
    "metrics": METRICS,
    "relay": RELAY,
}
NEEDED = {"mesh", "id", "nodes", "listen", "authority", "certificate", "key", "out"}


def checked(
    given: Any,
    rules: Mapping[str, Rule],
    source: str,
    prefix: str,
    needed: Collection[str] = (),
) -> dict[str, Any]:
    """The values, each as its rule makes it; or the first that breaks one, by file and key.

    What is asked for as options is named as options are: --dual-noise, not --dual_noise.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{source}: {prefix.rstrip('.')} is no table: put it in brackets")
    for key in given:
        if key not in rules:
            raise UnknownName(f"key in {source}:", prefix + key, [prefix + k for k in rules])
    for key in sorted(needed):
        if key not in given:
            raise InputError(f"{source}: {prefix}{key} is missing: give {rules[key].give}")
    for key, value in given.items():
        if not rules[key].fits(value):
            name = prefix + (key.replace("_", "-") if prefix == "--" else key)
            raise InputError(f"{source}: {name} is {value!r}: give {rules[key].give}")
    return {key: rules[key].made(value) for key, value in given.items()}
