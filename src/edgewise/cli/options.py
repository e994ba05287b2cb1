"""What the commands take."""

from dataclasses import dataclass
from typing import Annotated

import typer

from edgewise.cli import completion as names
from edgewise.cli.network_options import NETWORK_COMMANDS, same
from edgewise.cli.option_groups import (
    DATA,
    METHOD,
    OUTPUT,
    SEARCH,
    BudgetOptions,
    CommonOptions,
    DataOptions,
    EngineOptions,
    FaultOptions,
    FolderOptions,
    MethodOptions,
    PrivacyOptions,
    ProblemOptions,
    RunOptions,
    Several,
    Text,
    Whole,
    option,
)
from edgewise.cli.table_options import TableOptions


@dataclass(frozen=True)
class SolveOptions(
    CommonOptions,
    FolderOptions,
    FaultOptions,
    PrivacyOptions,
    RunOptions,
    MethodOptions,
    ProblemOptions,
):
    tensorboard: Annotated[
        bool, option(OUTPUT, "Write the run for TensorBoard too, into its folder.", "--tensorboard")
    ] = False
    summary: Annotated[
        bool,
        option(
            OUTPUT,
            "Standard errors, tests and intervals of the coefficients, by sums over the network: "
            "printed, and as summary.txt and summary.json.",
            "--summary",
        ),
    ] = False
    covariance: Annotated[
        str,
        option(OUTPUT, "Of --summary: auto, model, HC0, HC1, or cluster, for nodes as clusters."),
    ] = "auto"
    debias: Annotated[
        bool,
        option(OUTPUT, "Of --summary: of the fit without the penalty, which is gone on to."),
    ] = False
    least_count: Annotated[
        int, option(OUTPUT, "Of --summary: samples that a node has, or it refuses.")
    ] = 5


# Twenty hospitals, unevenly stocked: some see mostly benign cases, one has a single patient.
DEMO = {
    "data": "breast_cancer",
    "scale": True,
    "nodes": 20,
    "how": "label",
    "ridge": 1e-3,
    "penalty": ["l1:2e-3"],
    "weights": "sample",
    "intercept": True,
    "tol": 1e-7,
}


@dataclass(frozen=True)
class CompareOptions(
    CommonOptions, FolderOptions, FaultOptions, EngineOptions, BudgetOptions, ProblemOptions
):
    methods: Annotated[
        str,
        option(METHOD, "Names with commas between, or all.", autocompletion=names.methods),
    ] = "saga-pd,lsvr-pd,pg-extra,nids"
    tune: Annotated[bool, option(SEARCH, "Find every method's steps first, by one rule.")] = True
    accuracies: Annotated[
        str, option(SEARCH, "Divergences to reach, as parts of what it is at the start.")
    ] = "1e-3,1e-6,1e-9"
    seeds: Annotated[int, option(SEARCH, "Runs per method.")] = 5
    unit: Annotated[
        Text,
        option(
            OUTPUT,
            "Of the table: oracle_calls, rounds, bytes_sent or seconds",
            show_default="--per",
        ),
    ] = None


@dataclass(frozen=True)
class TuneOptions(
    CommonOptions,
    FolderOptions,
    FaultOptions,
    EngineOptions,
    BudgetOptions,
    MethodOptions,
    ProblemOptions,
):
    target: Annotated[
        float, option(SEARCH, "Divergence to reach, as a part of what it is at the start.")
    ] = 1e-9
    factors: Annotated[str, option(SEARCH, "Multiples to try of each step.")] = "0.25,0.5,1,2,4,8"


@dataclass(frozen=True)
class SplitOptions(CommonOptions, DataOptions):
    out: Annotated[str, option(OUTPUT, "Folder for the shards.")] = "shards"


@dataclass(frozen=True)
class PredictOptions(CommonOptions):
    model: Annotated[
        Text,
        typer.Argument(
            help="A folder of `edgewise solve`, of a peer, or that result.save wrote; or a "
            "model.json.",
            show_default=False,
            metavar="MODEL",
        ),
    ] = None
    data: Annotated[
        Text,
        typer.Argument(
            help="A file as `edgewise solve` takes it: a table (CSV, Parquet, ...) with labels or "
            "without, LIBSVM, npz.",
            show_default=False,
            metavar="DATA",
            autocompletion=names.data_sets,
        ),
    ] = None
    output: Annotated[
        Text, option(OUTPUT, "A CSV file for the predictions.", show_default="stdout")
    ] = None
    probabilities: Annotated[
        bool, option(OUTPUT, "Write the probability of every class too.", "--probabilities")
    ] = False
    label: Annotated[
        Text,
        option(
            DATA,
            "Label column of a table, if it has one: last, first or a name.",
            show_default="as it was called in the fit",
        ),
    ] = None
    ignore: Annotated[Several, same(TableOptions, "ignore")] = None
    separator: Annotated[Text, same(TableOptions, "separator")] = None
    decimal: Annotated[Text, same(TableOptions, "decimal")] = None
    encoding: Annotated[Text, same(TableOptions, "encoding")] = None
    header: Annotated[bool | None, same(TableOptions, "header")] = None


@dataclass(frozen=True)
class ReportOptions(CommonOptions):
    runs: Annotated[
        Several,
        typer.Argument(
            help="Folders of `edgewise solve` or of peers, or traces: .npz or .csv.",
            show_default=False,
            metavar="RUN...",
        ),
    ] = None
    x: Annotated[str, option(OUTPUT, "rounds, oracle_calls, bytes_sent or seconds.")] = "rounds"
    y: Annotated[str, option(OUTPUT, "residual, bregman, consensus or objective_gap.")] = "residual"
    out: Annotated[
        str, option(OUTPUT, "A page to click through (.html), or a plot (.png, .pdf, .svg).")
    ] = "out/report.html"


@dataclass(frozen=True)
class RunAuditOptions(CommonOptions):
    run: Annotated[
        Text,
        typer.Argument(help="A folder of `edgewise solve`.", show_default=False, metavar="RUN"),
    ] = None
    first: Annotated[
        int, option(SEARCH, "Rounds whose messages are looked at, from the first on.")
    ] = 300
    coalition: Annotated[
        Text,
        option(
            SEARCH,
            "Nodes that put what they see together, with commas between.",
            show_default="every fourth",
        ),
    ] = None
    members: Annotated[
        bool,
        option(SEARCH, "Ask also who was among the samples: another run, on half of the data."),
    ] = True
    patient: Annotated[
        bool,
        option(
            SEARCH,
            "Also fit rows through the steps of local training: a minute or more for each node.",
            "--patient",
        ),
    ] = False
    secret_draws: Annotated[
        bool,
        option(
            SEARCH,
            "As if nobody knew which samples a node draws, as of tolerant peers. Strict ones "
            "draw by the seed of the fit, which all have.",
            "--secret-draws",
        ),
    ] = False
    dual_noise: Annotated[
        float, option(SEARCH, "As if peers had begun with this --dual-noise.")
    ] = 0.0
    bits: Annotated[
        Whole, option(SEARCH, "As if messages had been rounded so.", show_default="the run's")
    ] = None
    out: Annotated[
        Text, option(OUTPUT, "A file for all of it, as JSON.", show_default="RUN/audit.json")
    ] = None


@dataclass(frozen=True)
class ReproduceOptions(CommonOptions):
    experiments: Annotated[
        Several,
        typer.Argument(
            help="Experiments; without any they are listed.",
            show_default=False,
            metavar="NAME...",
            autocompletion=names.experiments,
        ),
    ] = None
    all: Annotated[bool, option(SEARCH, "Run all of them.", "--all")] = False
    list: Annotated[bool, option(SEARCH, "List them.", "--list")] = False
    scale: Annotated[str, option(SEARCH, "small (some minutes each) or paper.")] = "small"
    tune_at: Annotated[
        str,
        option(SEARCH, "Scale at which steps are tuned; paper takes hours on a CPU."),
    ] = "small"
    data: Annotated[
        Text, option(DATA, "The epsilon file; by default rows like it are made up.")
    ] = None
    seed: Annotated[int, option(DATA, "Of the runs; data and graph stay the same.")] = 1
    jobs: Annotated[Whole, option(OUTPUT, "Methods at a time.", show_default="by cores")] = None
    out: Annotated[str, option(OUTPUT, "Folder; each experiment has one in OUT/SCALE.")] = (
        "out/reproduce"
    )
    progress: Annotated[
        bool | None, option(OUTPUT, "Show a progress bar; by itself on a terminal only.")
    ] = None


@dataclass(frozen=True)
class ListOptions(CommonOptions):
    pass


COMMANDS = (
    SolveOptions,
    CompareOptions,
    TuneOptions,
    SplitOptions,
    PredictOptions,
    ReportOptions,
    ReproduceOptions,
    ListOptions,
    *NETWORK_COMMANDS,
)
