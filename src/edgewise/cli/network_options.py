"""What the commands of `edgewise network` take."""

from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from edgewise.cli import completion as names
from edgewise.cli.option_groups import (
    DATA,
    FAULTS,
    GRAPH,
    METHOD,
    OUTPUT,
    PROBLEM,
    STOP,
    CommonOptions,
    DataOptions,
    MethodOptions,
    Number,
    PrivacyOptions,
    ProblemOptions,
    RunOptions,
    Several,
    Text,
    Whole,
    option,
)
from edgewise.cli.table_options import TableOptions

PEERS = "Peers"


def same(group: type, name: str) -> Any:
    """An option as another command has it, where its group has more than is wanted here."""
    return get_type_hints(group, include_extras=True)[name].__metadata__[0]


BETWEEN: Any = option(
    PROBLEM,
    "What edges carry, where models need not be equal: equal, shared:0,2, lasso:0.1, lasso-l1:0.1, "
    "ridge:0.1, huber:0.1,0.5. Several add up. Matrices are written into the TOML files.",
    metavar="TEXT",
    show_default=False,
)


@dataclass(frozen=True)
class KeyOptions:
    days: Annotated[int, option(PEERS, "Until certificates expire.")] = 365


@dataclass(frozen=True)
class LogOptions:
    log_level: Annotated[
        str,
        option(
            OUTPUT,
            "What a peer logs: debug, info, warning or error, and what is worse.",
            autocompletion=names.log_levels,
        ),
    ] = "info"


@dataclass(frozen=True)
class MeshOptions:
    folder: Annotated[
        str,
        typer.Argument(
            help="The folder that `edgewise network init` wrote.",
            show_default=False,
            metavar="MESH",
        ),
    ] = "mesh"


@dataclass(frozen=True)
class InitOptions(CommonOptions, KeyOptions, MethodOptions):
    nodes: Annotated[
        Whole, option(GRAPH, "How many peers.", show_default="as many as the file of edges has")
    ] = None
    graph: Annotated[
        Text,
        option(
            GRAPH,
            "ring, circulant (a ring with chords: four neighbours each), path, star, complete, "
            "grid, torus, random, small-world, or a text file with two node numbers a line.",
            show_default="circulant; ring below five peers",
            autocompletion=names.graphs,
        ),
    ] = None
    edges: Annotated[
        Text, option(GRAPH, "A text file with two peers' numbers a line; or of random, how many.")
    ] = None
    rows: Annotated[Whole, same(ProblemOptions, "rows")] = None
    cols: Annotated[Whole, same(ProblemOptions, "cols")] = None
    neighbours: Annotated[int, same(ProblemOptions, "neighbours")] = 4
    rewire: Annotated[float, same(ProblemOptions, "rewire")] = 0.1
    graph_seed: Annotated[Whole, same(ProblemOptions, "graph_seed")] = None
    host: Annotated[
        str, option(PEERS, "Where a peer is, {id} being its number: peer{id}.example.org.")
    ] = "127.0.0.1"
    port: Annotated[int, option(PEERS, "Peer I listens on this plus I.")] = 24700
    metrics_port: Annotated[
        Whole,
        option(
            PEERS,
            "Where a peer tells metrics and health, on its loopback interface; plus I where all "
            "are on one host.",
            show_default="any that is free; the log names it",
        ),
    ] = None
    relay: Annotated[
        Text,
        option(
            PEERS,
            "HOST:PORT of a relay (`network relay`), by which all peers reach each other: they "
            "dial out alone, and listen nowhere.",
            show_default="none",
        ),
    ] = None
    keys_on_hosts: Annotated[
        bool,
        option(
            PEERS,
            "Make no keys here: every host makes its own (`network request`), and only the "
            "request comes back, to be signed (`network sign`).",
            "--keys-on-hosts",
        ),
    ] = False
    loss: Annotated[str, same(ProblemOptions, "loss")] = "logistic"
    ridge: Annotated[float, same(ProblemOptions, "ridge")] = 0.0
    weights: Annotated[
        Text,
        option(
            PROBLEM,
            "sample: a peer counts by its samples, as if all were in one place; node: as every "
            "other.",
            show_default="sample; with --between node",
            autocompletion=names.weights,
        ),
    ] = None
    standardize: Annotated[
        bool,
        option(
            PROBLEM,
            "Columns of mean 0 and variance 1 over all peers' samples; models are in the data's "
            "own units.",
            "--standardize",
        ),
    ] = False
    holdout: Annotated[
        Number,
        option(PROBLEM, "Part of every peer's samples that the model is tried on, as 0.2."),
    ] = None
    masked: Annotated[
        bool,
        option(
            PROBLEM,
            "Sums before and after the fit, for weights, --standardize, --holdout and --summary, "
            "under masks that hide each peer's part. Every peer needs two neighbours.",
            "--masked",
        ),
    ] = False
    offset: Annotated[Text, same(TableOptions, "offset")] = None
    exposure: Annotated[Text, same(TableOptions, "exposure")] = None
    case_weight: Annotated[Text, same(TableOptions, "case_weight")] = None
    trials: Annotated[Text, same(TableOptions, "trials")] = None
    summary: Annotated[
        Text,
        option(
            PROBLEM,
            "Standard errors after the fit, in every peer's summary.txt and summary.json: auto, "
            "model, HC0, HC1, or cluster, for peers as clusters.",
        ),
    ] = None
    penalty: Annotated[Several, same(ProblemOptions, "penalty")] = None
    between: Annotated[Several, BETWEEN] = None
    intercept: Annotated[bool, same(ProblemOptions, "intercept")] = False
    classes: Annotated[
        Text,
        option(PROBLEM, "All labels, with commas between: a peer's own samples may lack some."),
    ] = None
    features: Annotated[
        Whole, option(PROBLEM, "Columns that every peer's data must have.", show_default=False)
    ] = None
    schema: Annotated[
        Text,
        option(
            DATA,
            "A TOML file with a [schema], which all peers' tables must fit; `edgewise network "
            "schema` proposes one.",
        ),
    ] = None
    eta: Annotated[Text, option(METHOD, "auto, theory, or a number.")] = None
    rho: Annotated[Text, option(METHOD, "auto, theory, or a number.")] = None
    dtype: Annotated[str, option(METHOD, "Peers compute in float64 or float32.")] = "float64"
    seed: Annotated[int, option(DATA, "Of graph and run: the same gives the same.")] = 0
    rounds: Annotated[int, same(RunOptions, "rounds")] = 100_000
    seconds: Annotated[Number, option(STOP, "Stop after so long.")] = None
    tol: Annotated[Number, option(STOP, "Stop when every peer's residual is below this.")] = None
    wire: Annotated[str, option(PEERS, "Numbers travel as float64 or float32.")] = "float64"
    bits: Annotated[
        Whole, option(PEERS, "Numbers travel as changes of so many bits; for tolerant peers.")
    ] = None
    dual_noise: Annotated[
        float,
        option(
            PEERS,
            "Size of random numbers in first messages: they hide gradients from fewer than all of "
            "a peer's neighbours, and cost rounds.",
        ),
    ] = 0.0
    dp_epsilon: Annotated[Number, same(PrivacyOptions, "dp_epsilon")] = None
    dp_delta: Annotated[Number, same(PrivacyOptions, "dp_delta")] = None
    dp_clip: Annotated[Number, same(PrivacyOptions, "dp_clip")] = None
    dp_row_norm: Annotated[Number, same(PrivacyOptions, "dp_row_norm")] = None
    dp_rounds: Annotated[int, same(PrivacyOptions, "dp_rounds")] = 400
    mode: Annotated[
        str,
        option(
            FAULTS,
            "tolerant: nobody waits for the slow or absent; strict: every round waits for all "
            "neighbours, and the run is the simulator's.",
        ),
    ] = "tolerant"
    patience: Annotated[float, option(FAULTS, "Seconds that tolerant peers wait a round.")] = 1.0
    out: Annotated[str, option(OUTPUT, "Folder for keys, certificates and configurations.")] = (
        "mesh"
    )


@dataclass(frozen=True)
class AddOptions(CommonOptions, KeyOptions, MeshOptions):
    neighbours: Annotated[
        str, option(PEERS, "Numbers of those that it is joined to, with commas between.")
    ] = ""
    host: Annotated[
        Text, option(PEERS, "Where it is.", show_default="this machine, if the others are on it")
    ] = None
    penalty: Annotated[
        Text, option(PROBLEM, "Its own.", show_default="the others', if all have the same")
    ] = None
    between: Annotated[Several, BETWEEN] = None


@dataclass(frozen=True)
class LeaveOptions(CommonOptions, MeshOptions):
    peer: Annotated[
        Whole, typer.Argument(help="The number of the one that leaves.", metavar="PEER")
    ] = None


@dataclass(frozen=True)
class RenewOptions(CommonOptions, KeyOptions, MeshOptions):
    peer: Annotated[
        Whole, typer.Argument(help="Its number; without one, all.", show_default=False)
    ] = None


@dataclass(frozen=True)
class RequestOptions(CommonOptions):
    peer: Annotated[
        str,
        typer.Argument(help="The peer's TOML file.", show_default=False, metavar="PEER.TOML"),
    ] = ""


@dataclass(frozen=True)
class SignOptions(CommonOptions, KeyOptions, MeshOptions):
    requests: Annotated[
        list[str] | None,
        typer.Argument(help="What hosts sent.", show_default=False, metavar="REQUEST.CSR..."),
    ] = None


@dataclass(frozen=True)
class RevokeOptions(CommonOptions, MeshOptions):
    peer: Annotated[
        Whole, typer.Argument(help="Its number.", show_default=False, metavar="PEER")
    ] = None


@dataclass(frozen=True)
class RelayOptions(CommonOptions, KeyOptions, LogOptions, MeshOptions):
    listen: Annotated[str, option(PEERS, "Where peers call it.")] = "0.0.0.0:24690"
    make: Annotated[
        bool,
        option(
            PEERS,
            "Make the relay's key and certificate and end, where the authority's key is.",
            "--make",
        ),
    ] = False
    out: Annotated[
        Text, option(OUTPUT, "Folder of its log.", show_default="relay, in that of its key")
    ] = None
    connections: Annotated[
        int, option(PEERS, "At most, two for each edge; each takes up to half a megabyte.")
    ] = 256
    megabytes: Annotated[float, option(PEERS, "That it passes on of one peer in a second.")] = 50.0


@dataclass(frozen=True)
class LocalOptions(CommonOptions, DataOptions, LogOptions, MeshOptions):
    data: Annotated[
        Text,
        option(
            DATA,
            "What to split among the peers: a file (LIBSVM, CSV, npz; plain, .gz, .bz2, .xz), or a "
            "named set: breast_cancer, diabetes, digits, iris, wine, a9a, mushrooms, ...",
            show_default=False,
            autocompletion=names.data_sets,
        ),
    ] = None
    shard: Annotated[
        Text,
        option(
            DATA,
            "Instead of data to split, every peer's own file, {id} being its number: "
            "hospital{id}.csv.",
        ),
    ] = None
    test: Annotated[Text, option(DATA, "The same of samples that the model is tried on.")] = None


@dataclass(frozen=True)
class SchemaOptions(CommonOptions):
    data: Annotated[
        Text,
        typer.Argument(
            help="A table as one of the peers has it: CSV, Parquet, ...",
            show_default=False,
            metavar="FILE",
        ),
    ] = None
    output: Annotated[
        Text, option(OUTPUT, "A TOML file for it, as schema.toml.", show_default="stdout")
    ] = None
    label: Annotated[
        Text, option(DATA, "The column of labels: last, first or a name.", show_default="last")
    ] = None
    regression: Annotated[
        bool, option(DATA, "Labels are numbers, and no classes.", "--regression")
    ] = False
    ignore: Annotated[Several, same(TableOptions, "ignore")] = None
    separator: Annotated[Text, same(TableOptions, "separator")] = None
    decimal: Annotated[Text, same(TableOptions, "decimal")] = None
    encoding: Annotated[Text, same(TableOptions, "encoding")] = None
    header: Annotated[bool | None, same(TableOptions, "header")] = None


@dataclass(frozen=True)
class StatusOptions(CommonOptions, MeshOptions):
    watch: Annotated[
        bool, option(OUTPUT, "Keep telling, until none is under way any more.", "--watch")
    ] = False


@dataclass(frozen=True)
class PageOptions(CommonOptions):
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="A folder that `edgewise network init` wrote, TOML files of peers on this "
            "machine, or addresses of metrics of peers elsewhere, as http://host:9464.",
            show_default="mesh",
            metavar="MESH|PEER.TOML|URL...",
        ),
    ] = None
    port: Annotated[int, option(OUTPUT, "Of the page, on the loopback interface; 0: any.")] = 24680
    open: Annotated[bool, option(OUTPUT, "Open the page in a browser.", "--open")] = False


@dataclass(frozen=True)
class NodeOptions(CommonOptions, LogOptions):
    peer: Annotated[
        str,
        typer.Argument(help="The peer's TOML file.", show_default=False, metavar="PEER.TOML"),
    ] = ""
    shard: Annotated[
        Text,
        option(
            DATA,
            "The peer's own data: npz, CSV or LIBSVM.",
            show_default="none, of a peer with a [cost]",
        ),
    ] = None
    test: Annotated[
        Text,
        option(
            DATA,
            "The peer's own samples that the model is tried on, in a file as the shard is; scores "
            "are of those of all peers.",
        ),
    ] = None
    label: Annotated[
        Text,
        option(
            DATA,
            "The column of labels in a table: last, first or a name.",
            show_default="the schema's, or last",
        ),
    ] = None
    status: Annotated[
        bool, option(OUTPUT, "Tell how a peer that runs is doing, and leave it alone.", "--status")
    ] = False
    watch: Annotated[
        bool,
        option(
            OUTPUT,
            "A live view of rounds, residual, bytes and neighbours: of the peer that --shard runs, "
            "with the end of its log; without --shard, of one that runs already on this machine, "
            "until it has ended or Ctrl-C. Where the output is no terminal, a line every 10 s.",
            "--watch",
        ),
    ] = False


@dataclass(frozen=True)
class AuditOptions(CommonOptions):
    action: Annotated[str, typer.Argument(help="verify", metavar="verify", show_default=False)] = ""
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            help="Folders of peers, as mesh/peer3.", show_default=False, metavar="FOLDER..."
        ),
    ] = None
    head: Annotated[
        Text,
        option(
            OUTPUT,
            "The hash of the last line as somebody else has it: lines that were cut off show.",
            "--head",
        ),
    ] = None


NETWORK_COMMANDS = (
    InitOptions,
    AddOptions,
    LeaveOptions,
    RenewOptions,
    RequestOptions,
    SignOptions,
    RevokeOptions,
    RelayOptions,
    AuditOptions,
    LocalOptions,
    SchemaOptions,
    StatusOptions,
    PageOptions,
    NodeOptions,
)
