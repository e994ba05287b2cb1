"""edgewise network init, add and leave"""

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table

import edgewise as ew
from edgewise import spec
from edgewise.cli.inputs import graph_size
from edgewise.cli.network_options import AddOptions, InitOptions, LeaveOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import GraphError, InputError

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import Fit, PeerConfig
    from edgewise.peers.operations.mesh import Mesh

ON_HOSTS = """\
  edgewise network request peer0.toml      # and send peer0.csr, which is no secret, here
here: edgewise network sign MESH peer0.csr     # and copy peer0.pem back, and there:
"""
FEW = 5  # peers: from so many on each gets four neighbours, as a ring takes ever more rounds

# What needs the extra is imported where it is used: the other commands do without.


def init(o: InitOptions) -> None:
    from edgewise.peers.config.schema import read_schema
    from edgewise.peers.node.supported_methods import require_method
    from edgewise.peers.operations import mesh
    from edgewise.peers.operations.authority import CERTIFICATE, KEY
    from edgewise.peers.relay import identity

    graph = graph_of(o)
    fit = fit_of(o)
    penalties = penalty_of_each(o.penalty, graph.nodes)
    between = between_of(o.between)
    if not (between and fit.loss == "none"):  # nobody has data, and each a cost
        spec.loss(fit.loss, fit.ridge)  # refuses what is none, as does the next
    require_method(fit, any(penalties), bool(between))
    if between and fit.intercept:
        raise InputError("--between takes no --intercept: add a column of ones to the data instead")

    def host(id: int) -> str:
        return o.host.replace("{id}", str(id))

    own: dict[str, Any] = {"between": between}
    if o.schema is not None:
        own["schema"] = read_schema(o.schema)

    own |= relay_of(o)

    def own_of(id: int) -> dict[str, Any]:
        return own | metrics_of(o, id)

    created = mesh.create(
        o.out, graph, fit, penalties, host, o.port, o.days, own_of, not o.keys_on_hosts
    )
    peers = [describe(created, config) for config in created.peers.values()]
    name = created.peers[0].mesh
    if o.relay is not None:
        identity.certify(created.folder, name, o.days)
    console = output(o)
    console.print(
        f"{name}: {graph.nodes} peers and {graph.edge_count} edges, in {created.folder}"
        + (f"; certificates expire on {ends[:10]}" if (ends := peers[0]["expires"]) else ""),
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("peer", "at", "neighbours", f"copy to its host, with {CERTIFICATE}"):
        table.add_column(column)
    for peer in peers:
        around = ", ".join(map(str, peer["neighbours"]))
        at = "" if o.relay is not None else peer["address"]
        table.add_row(str(peer["id"]), at, around, " ".join(peer["files"][:-1]))
    console.print(table)
    console.print(
        f"{KEY} stays here, best offline: whoever has it can make peers. On each host:\n"
        + (ON_HOSTS if o.keys_on_hosts else "")
        + "  edgewise node peer0.toml --shard FILE",
        highlight=False,
        soft_wrap=True,
    )
    if o.relay is not None:
        console.print(
            f"at {o.relay}, with a copy of {CERTIFICATE}, {identity.PEM} and {identity.KEY} in "
            "FOLDER:\n  edgewise network relay FOLDER",
            highlight=False,
            soft_wrap=True,
        )
    if o.json:
        print_json(
            {
                "command": "network init",
                "folder": str(created.folder),
                "mesh": name,
                "nodes": graph.nodes,
                "edges": graph.edges,
                "stays": KEY,
                "peers": peers,
            }
        )


def metrics_of(o: InitOptions, id: int) -> dict[str, str]:
    """The address, where a port is given; one for each peer where they share a host."""
    from edgewise.peers.config.addresses import address_of

    if o.metrics_port is None:
        return {}
    own_host = "{id}" in o.host
    return {"metrics": address_of("127.0.0.1", o.metrics_port + (0 if own_host else id))}


def relay_of(o: InitOptions) -> dict[str, str]:
    from edgewise.peers.config.rules import RELAY

    if o.relay is None:
        return {}
    if not RELAY.fits(o.relay):
        raise InputError(f"--relay is {o.relay!r}: give HOST:PORT of a relay")
    return {"relay": o.relay}


def add(o: AddOptions) -> None:
    from edgewise.peers.node.supported_methods import require_method
    from edgewise.peers.operations import mesh

    penalty = None if o.penalty is None else penalty_of_each([o.penalty], 1)[0]
    around = [whole for whole in o.neighbours.split(",") if whole]
    if not all(re.fullmatch(r" *[0-9]+ *", whole) for whole in around):
        raise InputError(f"--neighbours {o.neighbours!r} cannot be read: give numbers, as 2,5")
    fit = next(iter(mesh.read_mesh(o.folder).peers.values())).fit
    couples = any(config.couples for config in mesh.read_mesh(o.folder).peers.values())
    require_method(fit, bool(penalty), couples)
    between = between_of(o.between).get("all")
    if between and not couples:
        raise InputError("the others' edges carry no couplings: leave --between out")
    to = [int(whole) for whole in around]
    grown, id = mesh.add(o.folder, to, o.host, penalty, o.days, between)
    peer = describe(grown, grown.peers[id])
    console = output(o)
    console.print(
        f"peer {id} at {peer['address']}, joined to {', '.join(map(str, peer['neighbours']))}: "
        f"copy {' '.join(peer['files'])} to its host",
        highlight=False,
        soft_wrap=True,
    )
    changed = changed_files(grown.peers, but=id)
    console.print(copy_advice(changed), highlight=False, soft_wrap=True)
    if o.json:
        print_json({"command": "network add", "peer": peer, "changed": changed})


def leave(o: LeaveOptions) -> None:
    from edgewise.peers.operations import mesh

    if o.peer is None:
        raise InputError("no peer: give the number of the one that leaves")
    smaller = mesh.leave(o.folder, o.peer)
    changed = changed_files(smaller.peers)
    console = output(o)
    console.print(f"peer {o.peer} is no longer in the network", highlight=False, soft_wrap=True)
    console.print(copy_advice(changed), highlight=False, soft_wrap=True)
    if not smaller.complete:
        console.print("not all peers are here: whether the others stay connected was not checked")
    if o.json:
        summary = {"peer": o.peer, "changed": changed, "connected": smaller.complete or None}
        print_json({"command": "network leave", **summary})


# --- what is typed --------------------------------------------------------------------------------


def graph_of(o: InitOptions) -> ew.Graph:
    source, edges = o.graph or "", None
    if o.edges is not None and o.edges.isdecimal():
        edges = int(o.edges)
    elif o.edges is not None:
        source = o.edges
        if not Path(source).is_file():
            raise GraphError(f"there is no file {source}: give --edges a file, or a number")
    nodes = nodes_in(source) if o.nodes is None else o.nodes
    source = source or ("ring" if nodes < FEW else "circulant")
    seed = o.seed if o.graph_seed is None else o.graph_seed
    graph = spec.graph(source, nodes, seed, graph_size(o)._replace(edges=edges))
    graph.require_connected()
    return graph


def nodes_in(source: str) -> int:
    if not Path(source).is_file():
        raise InputError("the number of peers is missing: give --nodes, or a file of --edges")
    try:
        return int(np.loadtxt(source, dtype=np.int64, ndmin=2).max()) + 1
    except ValueError as problem:
        raise GraphError(f"{source}: {problem}; give two numbers a line") from None


def fit_of(o: InitOptions) -> "Fit":
    from edgewise.peers.config.peer_config import Fit
    from edgewise.peers.config.rules import FIT, checked
    from edgewise.peers.node.supported_methods import with_batch

    given = {f.name: getattr(o, f.name) for f in fields(Fit)}
    given |= {"eta": number_or_text(o.eta), "rho": number_or_text(o.rho)}
    if o.weights is None and not o.between:
        given["weights"] = "sample"
    if o.classes is not None:
        given["classes"] = labels(o.classes.split(","))
    given = {key: value for key, value in given.items() if value is not None}
    return with_batch(Fit(**checked(given, FIT, "network init", "--")))


def number_or_text(text: str | None) -> Any:
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def labels(texts: list[str]) -> list[Any]:
    """Numbers where all are."""
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return [text.strip() for text in texts]


def penalty_of_each(texts: list[str] | None, nodes: int) -> list[tuple[str, ...]]:
    """The text that holds for a peer, without the numbers before it."""
    spec.penalty(texts, nodes)  # refuses what is none
    each: list[tuple[str, ...]] = [()] * nodes
    for text in sorted(texts or [], key=lambda text: "=" in text):  # those for all first
        who, _, what = text.rpartition("=")
        first, _, last = (who or f"0-{nodes - 1}").partition("-")
        for i in range(int(first), int(last or first) + 1):
            each[i] = () if what == "none" else (what,)
    return each


def between_of(texts: list[str] | None) -> dict[str, Any]:
    """The table of every peer."""
    for text in texts or []:
        spec.between(text)  # refuses what is none
    return {"all": texts[0] if len(texts) == 1 else list(texts)} if texts else {}


# --- what is printed ------------------------------------------------------------------------------


def describe(network: "Mesh", config: "PeerConfig") -> dict[str, Any]:
    from edgewise.peers.operations.authority import CERTIFICATE
    from edgewise.peers.operations.mesh import found_at

    own = [p for p in (config.path, config.certificate, config.key) if p.exists()]
    return {
        "id": config.id,
        "address": found_at(network, config.id),
        "neighbours": [n.id for n in config.neighbours],
        "files": [path.name for path in own] + [CERTIFICATE],
        "expires": expires(config),
    }


def expires(config: "PeerConfig") -> str | None:
    from edgewise.peers.operations.expiry import expires as known

    ends = known(config)
    return None if ends is None else ends.isoformat()


def changed_files(peers: dict[int, "PeerConfig"], but: int | None = None) -> list[str]:
    return [config.path.name for config in peers.values() if config.id != but]


def copy_advice(changed: list[str]) -> str:
    return (
        f"changed: {' '.join(changed)}; copy each to its host: tolerant peers that run read it "
        "again by themselves, strict ones are all to be started anew without their checkpoints"
    )
