"""What a peer knows before it starts: who it is, who its neighbours are, and what is to be fitted.

[peer]         who it is and where it keeps things; its own penalty
[[neighbour]]  one for each: its number, its address, and whether this peer dials
[fit]          what all peers must agree on
[between]      what the edges carry where models need not be equal (`between`)
[cost]         a cost that takes no data, beside them or instead (`node.own_problem`)
[penalty]      a penalty that has vectors
[schema]       what every peer's table holds, column by column (`schema`)
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from edgewise.data.row_terms import TermColumns
from edgewise.errors import InputError
from edgewise.fileio import read_toml, toml
from edgewise.peers.config import certificates
from edgewise.peers.config.identity import Identity, require_held
from edgewise.peers.config.privacy import require_private
from edgewise.peers.config.rules import FIT, NEEDED, NEIGHBOUR, PEER, checked
from edgewise.peers.config.schema import TABLE, Schema, schema_in
from edgewise.peers.config.tables import require_between, require_cost, require_penalty

METRICS = "127.0.0.1:0"
TABLES = ("between", "cost", "penalty")
PATHS = ("authority", "certificate", "key", "out")


@dataclass(frozen=True)
class Neighbour:
    id: int
    address: str
    dial: bool  # whether this peer dials: by default the one with the lower number
    relay: str | None = None  # by which the two meet, where neither can be reached


@dataclass(frozen=True)
class Fit:
    """What all peers must agree on."""

    method: str = "auto"
    set: tuple[str, ...] = ()
    loss: str = "logistic"
    weights: str | None = None  # "sample": a peer counts by its samples, "node": as every other
    standardize: bool = False  # columns, by means and spreads of all peers' samples
    holdout: float | None = None  # part of every peer's samples that models are tried on
    masked: bool = False  # all these sums are under pairwise masks
    summary: str | None = None  # the covariance of standard errors, where they are wanted
    offset: str | None = None  # a table's column that is added to margins
    exposure: str | None = None  # one whose logarithm is
    case_weight: str | None = None  # one that says how many samples a row stands for
    trials: str | None = None  # one of which labels are the successes
    ridge: float = 0.0
    intercept: bool = False
    classes: tuple[Any, ...] | None = None
    features: int | None = None
    rounds: int = 100_000
    seconds: float | None = None
    tol: float | None = None
    seed: int = 0
    eta: str | float | None = None
    rho: str | float | None = None
    dtype: str = "float64"
    wire: str = "float64"
    bits: int | None = None
    dual_noise: float = 0.0
    dp_epsilon: float | None = None  # differential privacy of every sample, where it is given
    dp_delta: float | None = None
    dp_clip: float | None = None
    dp_row_norm: float | None = None
    dp_rounds: int = 400
    mode: str = "tolerant"
    patience: float = 1.0


@dataclass(frozen=True)
class PeerConfig(Identity):
    path: Path
    mesh: str
    id: int
    nodes: int
    listen: str
    neighbours: tuple[Neighbour, ...]
    authority: Path
    certificate: Path
    key: Path
    out: Path
    fit: Fit = field(default_factory=Fit)
    penalty: tuple[str, ...] = ()
    checkpoint_every: int = 10
    record_every: int = 10
    drop_after: float | None = None  # None: as long as the run took until then, within bounds
    metrics: str | None = METRICS
    relay: str | None = None  # to all neighbours that have no other
    least_count: int = 5  # of people, below which it tells no count and no matrix
    between: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    own_penalty: dict[str, Any] = field(default_factory=dict)  # instead of `penalty`
    schema: Schema | None = None

    @property
    def couples(self) -> bool:
        """Whether models need not be equal."""
        return bool(self.between)

    @property
    def weighs_samples(self) -> bool:
        """Whether a peer counts by its samples. With couplings models are the peers' own, and every
        peer counts alike."""
        return not self.couples and self.fit.weights != "node"

    @property
    def sums_first(self) -> bool:
        """Whether peers add up what they have before they fit."""
        fit = self.fit
        after = fit.holdout is not None or fit.summary is not None
        return self.weighs_samples or fit.standardize or after

    @property
    def terms(self) -> TermColumns:
        """Columns of tables that are no features."""
        return TermColumns(*(getattr(self.fit, name) for name in TermColumns._fields))

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """All labels there are, where that is said."""
        return self.fit.classes or (None if self.schema is None else self.schema.classes)

    @property
    def penalised(self) -> bool:
        return bool(self.penalty or self.own_penalty)

    def agreed(self) -> dict[str, Any]:
        """What neighbours compare field by field before they start, as JSON can hold it."""
        fit = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self.fit).items()}
        weights = "sample" if self.weighs_samples else "node"
        agreed = {"mesh": self.mesh, **fit, "weights": weights}
        if self.fit.mode == "strict":  # what is sent is kept until its receiver has saved it
            agreed["checkpoint_every"] = self.checkpoint_every
        return agreed


# --- reading --------------------------------------------------------------------------------------


def load(path: str | Path) -> PeerConfig:
    """A peer's configuration, with keys and certificates that it can run with now."""
    config = read(path)
    require_identity(config)
    return config


def read(path: str | Path) -> PeerConfig:
    """The same where the keys need not be here, as in the folder of who set up the mesh."""
    path = Path(path)
    given = read_toml(path)
    for table in given:
        if table not in ("peer", "neighbour", "fit", *TABLES, TABLE):
            raise InputError(
                f"{path}: {table} is unknown: there are peer, neighbour, fit, "
                f"{', '.join(TABLES)}, {TABLE}"
            )
    peer = checked(given.get("peer", {}), PEER, str(path), "peer.", NEEDED)
    peer |= {name: path.parent / peer[name] for name in PATHS}
    fit = Fit(**checked(given.get("fit", {}), FIT, str(path), "fit."))
    listed = given.get("neighbour", [])
    if not isinstance(listed, list):
        raise InputError(f"{path}: [neighbour] is one table: write [[neighbour]]")
    neighbours = [neighbour_in(each, path, peer["id"], peer.get("relay")) for each in listed]
    between, cost, penalty = (given.get(table, {}) for table in TABLES)
    between = require_between(between, [n.id for n in neighbours], str(path))
    own: dict[str, Any] = {
        "between": between,
        "cost": require_cost(cost, bool(between), str(path)),
        "own_penalty": require_penalty(penalty, peer.get("penalty"), str(path)),
    }
    if TABLE in given:
        own["schema"] = schema_in(given[TABLE], str(path))
    config = PeerConfig(path, neighbours=tuple(neighbours), fit=fit, **peer, **own)
    require_sound(config)
    return config


def neighbour_in(given: Any, path: Path, own: int, relay: str | None) -> Neighbour:
    values = checked(given, NEIGHBOUR, str(path), "neighbour.", ("id", "address"))
    return Neighbour(**{"dial": own < values["id"], "relay": relay, **values})


def require_sound(config: PeerConfig) -> None:
    ids, at = [n.id for n in config.neighbours], f"{config.path}: neighbour.id"
    if config.id in ids:
        raise InputError(f"{at} is {config.id}, which is this peer: leave it out")
    for id in ids:
        if ids.count(id) > 1:
            raise InputError(f"{at} {id} is there {ids.count(id)} times: leave one")
    if len(ids) >= config.nodes or (config.nodes > 1 and not ids):
        raise InputError(
            f"{config.path}: peer.nodes is {config.nodes} and there are {len(ids)} neighbours: "
            "give the number of all peers, and one neighbour or more"
        )
    require_schema_fits(config)
    require_no_sums_of_couplings(config)
    require_masks_hide(config)
    require_private(config.fit, config.couples, str(config.path))


def require_masks_hide(config: PeerConfig) -> None:
    if not config.fit.masked or config.nodes == 1:
        return
    if not config.sums_first:
        raise InputError(
            f"{config.path}: fit.masked is for sums, and this fit takes none: leave it out"
        )
    if len(config.neighbours) < 2:
        raise InputError(
            f"{config.path}: peer {config.id} has one neighbour, whom no mask hides its numbers "
            "from: give it a second one, or leave fit.masked out"
        )


def require_schema_fits(config: PeerConfig) -> None:
    schema, fit = config.schema, config.fit
    if schema is None:
        return
    if fit.classes is not None and schema.classes not in (None, fit.classes):
        raise InputError(
            f"{config.path}: fit.classes is {list(fit.classes)} and schema.classes "
            f"{list(schema.classes or ())}: leave fit.classes out"
        )
    if schema.scaled and fit.standardize:
        raise InputError(
            f"{config.path}: the schema has centre and scale, and fit.standardize finds them out: "
            "leave one out"
        )


def require_no_sums_of_couplings(config: PeerConfig) -> None:
    """Where models are the peers' own, there is nothing to weigh, or to scale, or to try them on
    together."""
    fit = config.fit
    for name, given in (
        ('weights = "sample"', fit.weights == "sample"),
        ("standardize", fit.standardize),
        ("holdout", fit.holdout is not None),
        ("summary", fit.summary is not None),
    ):
        if config.couples and given:
            raise InputError(
                f"{config.path}: fit.{name} goes with models that are equal, and there is "
                "[between]: leave it out"
            )


def require_identity(config: PeerConfig) -> None:
    """Raises InputError unless the files say that this is this peer, and nobody else can."""
    require_held(config, own_name(config))


def own_name(config: PeerConfig) -> str:
    return certificates.name_of(config.mesh, config.id)


# --- writing --------------------------------------------------------------------------------------


def save(config: PeerConfig) -> None:
    """To its own path, at one moment: the peer may be looking."""
    base = config.path.parent
    peer = {f.name: getattr(config, f.name) for f in fields(config)}
    for name in ("path", "neighbours", "fit", "between", "cost", "own_penalty", "schema"):
        del peer[name]
    for name in PATHS:
        inside = peer[name].is_relative_to(base)
        peer[name] = str(peer[name].relative_to(base) if inside else peer[name])
    peer["metrics"] = config.metrics or False
    tables = [("[peer]", peer)]
    for n in config.neighbours:
        tables.append(("[[neighbour]]", {**asdict(n), "relay": relay_told(config, n)}))
    tables.append(("[fit]", asdict(config.fit)))
    own = zip(TABLES, (config.between, config.cost, config.own_penalty), strict=True)
    tables += [(f"[{name}]", values) for name, values in own if values]
    text = "\n".join(written(*table) for table in tables)
    if config.schema is not None:
        text += "\n" + config.schema.text()
    certificates.replace_public(config.path, text.encode())


def relay_told(config: PeerConfig, neighbour: Neighbour) -> str | bool | None:
    """What differs from the peer's own."""
    if neighbour.relay == config.relay:
        return None
    return neighbour.relay or False


def written(title: str, values: Mapping[str, Any]) -> str:
    given = {key: value for key, value in values.items() if value is not None}
    return "\n".join([title, *(f"{key} = {toml(value)}" for key, value in given.items()), ""])
