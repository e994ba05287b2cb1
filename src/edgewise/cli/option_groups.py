"""Options in groups, each by the name it has in the API.

A command's class inherits the groups it needs, so that an option is written down once.
"""

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from edgewise.cli import completion as names
from edgewise.cli.config import read_config, read_run
from edgewise.cli.table_options import TableOptions

Text: TypeAlias = str | None
Number: TypeAlias = float | None
Whole: TypeAlias = int | None
Several: TypeAlias = list[str] | None

DATA, GRAPH, PROBLEM = "Data", "Network", "Problem"
METHOD, STOP, FAULTS, OUTPUT = "Method", "Start and stop", "Faults", "Output"
SEARCH = "Search"


def option(panel: str, help: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class DataOptions(TableOptions):
    data: Annotated[
        Text,
        typer.Argument(
            help="A file (CSV, TSV, Parquet, Arrow, LIBSVM, npz; text also .gz, .bz2, .xz), a "
            "folder that `edgewise split` wrote, or a named set: breast_cancer, diabetes, digits, "
            "iris, wine, a9a, mushrooms, ...",
            show_default=False,
            metavar="[DATA]",
            autocompletion=names.data_sets,
        ),
    ] = None
    nodes: Annotated[Whole, option(DATA, "Nodes to split the data over.", show_default="10")] = None
    how: Annotated[
        str,
        option(DATA, "Split by chance (iid), label or size.", autocompletion=names.splits),
    ] = "iid"
    alpha: Annotated[float, option(DATA, "How uneven label and size are: small is very.")] = 0.5
    features: Annotated[Whole, option(DATA, "Columns, where a LIBSVM file cannot tell.")] = None
    label: Annotated[str, option(DATA, "Label column of a table: last, first or a name.")] = "last"
    dense: Annotated[
        bool | None,
        option(
            DATA, "Hold X dense or sparse; by itself it does what is smaller.", "--dense/--sparse"
        ),
    ] = None
    scale: Annotated[
        bool,
        option(
            DATA,
            "Give every column mean 0 (where X is dense) and variance 1, by looking at all data at "
            "once, as an experiment may.",
        ),
    ] = False
    normalize: Annotated[bool, option(DATA, "Give every row length 1, after columns.")] = False
    seed: Annotated[int, option(DATA, "Of split, graph and run: the same gives the same.")] = 0
    split_seed: Annotated[Whole, option(DATA, "Of the split alone.", show_default="--seed")] = None


@dataclass(frozen=True)
class CommonOptions:
    """What every command takes."""

    config: Annotated[
        Text,
        option(
            OUTPUT,
            "A TOML file with any of these options; those given here win.",
            callback=read_config,
            is_eager=True,
        ),
    ] = None
    json: Annotated[bool, option(OUTPUT, "Print one JSON object and nothing else.", "--json")] = (
        False
    )
    debug: Annotated[bool, option(OUTPUT, "Show where an error came from.", "--debug")] = False


@dataclass(frozen=True)
class ProblemOptions(DataOptions):
    """A problem on a graph."""

    shards: Annotated[
        Text, option(DATA, "A folder that `edgewise split` wrote, instead of DATA.")
    ] = None
    sample_weight: Annotated[
        Text, option(DATA, "A file (.npy or text) with one weight per sample.")
    ] = None
    standardize: Annotated[
        bool,
        option(
            DATA,
            "Do what --scale does, in its place, by sums over the network: neighbours tell each "
            "other running sums, and nobody pools data.",
            "--standardize",
        ),
    ] = False
    graph: Annotated[
        str,
        option(
            GRAPH,
            "ring, circulant, path, star, complete, grid, torus, random, small-world, or a text "
            "file with two node numbers a line.",
            autocompletion=names.graphs,
        ),
    ] = "random"
    edges: Annotated[Whole, option(GRAPH, "Of random.", show_default="2.5 a node")] = None
    rows: Annotated[Whole, option(GRAPH, "Of grid and torus.", show_default="most square")] = None
    cols: Annotated[Whole, option(GRAPH, "Of grid and torus.", show_default="nodes / rows")] = None
    neighbours: Annotated[int, option(GRAPH, "Of small-world, before rewiring.")] = 4
    rewire: Annotated[float, option(GRAPH, "Of small-world: the share of edges rewired.")] = 0.1
    graph_seed: Annotated[Whole, option(GRAPH, "Of the graph alone.", show_default="--seed")] = None
    loss: Annotated[
        str,
        option(
            PROBLEM,
            "logistic, squared, huber:DELTA, smoothed-hinge:WIDTH, sigmoid, multinomial; poisson, "
            "gamma, tweedie:POWER, negative-binomial:DISPERSION, binomial, quantile:LEVEL,WIDTH; "
            "cox.",
            "--loss",
            "--family",
            autocompletion=names.losses,
        ),
    ] = "logistic"
    ridge: Annotated[float, option(PROBLEM, "(ridge/2) |x|² in the loss of every node.")] = 0.0
    penalty: Annotated[
        Several,
        option(
            PROBLEM,
            "l1:LAM, squared-l2:LAM, elastic-net:L1,L2, group-l2:LAM,G1,..., box:LO,HI, "
            "non-negative, simplex:R, l1-ball:R, l2-ball:R, half-space:A1,...,B. For some nodes "
            "only: 3=box:-1,1 or 0-4=l1:1e-3. May be repeated.",
            autocompletion=names.penalties,
        ),
    ] = None
    weights: Annotated[
        str,
        option(
            PROBLEM,
            "node: every node has the same say; sample: every sample.",
            autocompletion=names.weights,
        ),
    ] = "node"
    intercept: Annotated[bool, option(PROBLEM, "Fit one, outside ridge and penalty.")] = False


@dataclass(frozen=True)
class MethodOptions:
    method: Annotated[
        str,
        option(
            METHOD,
            "auto: what fits the problem; `edgewise methods` lists the others.",
            autocompletion=names.methods,
        ),
    ] = "auto"
    set: Annotated[
        Several,
        option(
            METHOD, "Another parameter of the method, as batch=4 or form=edge. May be repeated."
        ),
    ] = None


@dataclass(frozen=True)
class FolderOptions:
    dtype: Annotated[Text, option(METHOD, "float64 (default on a CPU) or float32.")] = None
    out: Annotated[
        Text, option(OUTPUT, "Folder for the run.", show_default="out/NAME-TIMESTAMP")
    ] = None
    save: Annotated[bool, option(OUTPUT, "Keep the run in a folder.")] = True
    progress: Annotated[
        bool | None, option(OUTPUT, "Show a progress bar; by itself on a terminal only.")
    ] = None


@dataclass(frozen=True)
class EngineOptions:
    engine: Annotated[
        str,
        option(
            METHOD,
            "simulator: this process has all nodes; mpi: the ranks of a job, as in mpiexec -n 8 "
            "edgewise solve --shards shards --engine mpi.",
            autocompletion=names.engines,
        ),
    ] = "simulator"
    partition: Annotated[
        str,
        option(
            METHOD,
            "Nodes of a rank: metis (few edges between ranks) or contiguous.",
            autocompletion=names.partitions,
        ),
    ] = "metis"


@dataclass(frozen=True)
class RunOptions(EngineOptions):
    eta: Annotated[Text, option(METHOD, "auto, theory, a number, or one per node: 0.1,0.2,...")] = (
        None
    )
    rho: Annotated[Text, option(METHOD, "auto, theory, a number, or one per edge.")] = None
    devices: Annotated[Whole, option(METHOD, "Spread the nodes over so many GPUs.")] = None
    rounds: Annotated[int, option(STOP, "Communication rounds, at most.")] = 5000
    tol: Annotated[Number, option(STOP, "Stop at this optimality residual.")] = None
    oracle_budget: Annotated[Number, option(STOP, "Stop at so many oracle calls a node.")] = None
    record_every: Annotated[
        Whole,
        option(
            STOP,
            "Rounds between two rows of the trace.",
            show_default="5, 10 or 50, by the work of a round",
        ),
    ] = None
    reference: Annotated[
        bool | None,
        option(
            STOP,
            "Measure against the centralised optimum, which takes a solve.",
            show_default="yes, but not with mpi",
        ),
    ] = None
    x0: Annotated[Text, option(STOP, "A former run's folder, to start from its models.")] = None
    duals: Annotated[Text, option(STOP, "A former run's folder, to start from its duals.")] = None
    checkpoint: Annotated[
        Text,
        option(
            STOP, "File to save the state to and go on from.", show_default="RUN/checkpoint.bin"
        ),
    ] = None
    resume: Annotated[
        Text,
        option(
            STOP,
            "Go on with this run's folder, with its configuration; options given here win.",
            callback=read_run,
            is_eager=True,
        ),
    ] = None


@dataclass(frozen=True)
class PrivacyOptions:
    dp_epsilon: Annotated[
        Number,
        option(
            PROBLEM,
            "Differential privacy of every sample: what a node's messages may tell of one. With "
            "--dp-delta and --dp-clip.",
        ),
    ] = None
    dp_delta: Annotated[
        Number, option(PROBLEM, "With what probability they may tell more, as 1e-5.")
    ] = None
    dp_clip: Annotated[
        Number, option(PROBLEM, "How long a sample's gradient may be: a constant.")
    ] = None
    dp_row_norm: Annotated[
        Number,
        option(
            PROBLEM, "How long a row may be.", show_default="the clip over the loss's largest slope"
        ),
    ] = None
    dp_rounds: Annotated[int, option(STOP, "Rounds of a private run.")] = 400


@dataclass(frozen=True)
class FaultOptions:
    drop: Annotated[Number, option(FAULTS, "Part of the messages that get lost.")] = None
    burst: Annotated[Number, option(FAULTS, "Mean rounds that an edge loses all in a row.")] = None
    delay: Annotated[Whole, option(FAULTS, "Messages take up to so many rounds more.")] = None
    patience: Annotated[
        Whole, option(FAULTS, "Rounds that a node waits for new messages, as tolerant peers do.")
    ] = None
    awake: Annotated[
        Text, option(FAULTS, "Part of the rounds that a node is awake, or one per node.")
    ] = None
    nap: Annotated[Number, option(FAULTS, "Mean rounds that a node sleeps in a row.")] = None
    down: Annotated[
        Several, option(FAULTS, "I:J:FIRST:LAST, a link that is down. May be repeated.")
    ] = None
    wipe: Annotated[
        Several, option(FAULTS, "NODE:ROUND, when it forgets everything. May be repeated.")
    ] = None
    leave: Annotated[Several, option(FAULTS, "NODE:ROUND, from when it is gone.")] = None
    join: Annotated[Several, option(FAULTS, "NODE:ROUND, from when it is there.")] = None
    liars: Annotated[
        Text, option(FAULTS, "SHARE:ATTACK of the nodes that lie: 0.1:flip, large, drift or model.")
    ] = None
    bits: Annotated[Whole, option(FAULTS, "Messages are rounded to so many bits a number.")] = None
    keep: Annotated[Number, option(FAULTS, "Part of a message's numbers sent, the largest.")] = None
    feedback: Annotated[
        bool, option(FAULTS, "With --bits or --keep: send changes, so that nothing is left out.")
    ] = True
    fault_seed: Annotated[int, option(FAULTS, "Of all this.")] = 0


@dataclass(frozen=True)
class BudgetOptions:
    budget: Annotated[
        Number, option(SEARCH, "What a run may spend.", show_default="30 passes over the data")
    ] = None
    per: Annotated[str, option(SEARCH, "Its unit: oracle_calls, bytes_sent or rounds.")] = (
        "oracle_calls"
    )
