"""The commands: what each takes and says in its help.

A command's own module is imported when it runs, so that help and completion are quick.
"""

from typing import Annotated

import typer

from edgewise import __version__
from edgewise.cli.network_options import (
    AddOptions,
    AuditOptions,
    InitOptions,
    LeaveOptions,
    LocalOptions,
    NodeOptions,
    PageOptions,
    RelayOptions,
    RenewOptions,
    RequestOptions,
    RevokeOptions,
    SchemaOptions,
    SignOptions,
    StatusOptions,
)
from edgewise.cli.options import (
    DEMO,
    CompareOptions,
    ListOptions,
    PredictOptions,
    ReportOptions,
    ReproduceOptions,
    RunAuditOptions,
    SolveOptions,
    SplitOptions,
    TuneOptions,
)
from edgewise.cli.shell import EXIT_CODES, with_options

app = typer.Typer(
    name="edgewise",
    help="Fit models across machines that keep their own data, with no coordinator.",
    epilog=f"`edgewise solve` alone runs a demo. {EXIT_CODES}",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
of_network = typer.Typer(
    help="Peers on hosts of their own, each with data that nobody else sees.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(of_network, name="network")


def version(wanted: bool) -> None:
    if wanted:
        print(f"edgewise {__version__}")
        raise typer.Exit()


@app.callback()
def edgewise(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def examples(*lines: str) -> str:
    return "\n\n".join(
        ["[bold]Examples[/]", *(f"  $ edgewise {line}" for line in lines), EXIT_CODES]
    )


@app.command(
    "solve",
    epilog=examples(
        "solve",
        "solve breast_cancer --scale --normalize --nodes 20 --how label --ridge 1e-2 --tol 1e-6",
        "solve data.svm.xz --graph ring --penalty l1:1e-3 --method svr-pd-es --rounds 20000",
        "solve --shards shards --loss squared --drop 0.2 --awake 0.5 --wipe 3:2000",
        "solve --config run.toml --seed 1 --json",
        "solve --resume out/saga-pd-20300101-120000 --rounds 40000",
    ),
)
@with_options(SolveOptions, otherwise=DEMO)
def solve(o: SolveOptions) -> None:
    """Fit a model over a graph, and keep the run in a folder.

    Without DATA it runs the demo: 20 hospitals, unevenly stocked, fit one sparse model.
    """
    from edgewise.cli.solve import solve as run

    run(o)


@app.command(
    "compare",
    epilog=examples(
        "compare breast_cancer --scale --normalize --ridge 1e-2 --methods saga-pd,nids,gt-saga",
        "compare data.csv --loss squared --budget 5000 --per rounds --unit bytes_sent",
        "compare breast_cancer --scale --normalize --ridge 1e-2 --drop 0.2 --awake 0.5",
    ),
)
@with_options(CompareOptions)
def compare(o: CompareOptions) -> None:
    """Run several methods and say what each accuracy cost them.

    Steps are found by one rule for all, with a seed that the runs do not see.
    """
    from edgewise.cli.compare import compare as run

    run(o)


@app.command(
    "tune",
    epilog=examples(
        "tune breast_cancer --scale --normalize --ridge 1e-2 --method saga-pd --out tuned",
        "solve --config tuned/best.toml",
    ),
)
@with_options(TuneOptions)
def tune(o: TuneOptions) -> None:
    """Try a grid of steps for a method and say which was best.

    best.toml in the run's folder is a configuration for `edgewise solve` with these steps.
    """
    from edgewise.cli.tune import tune as run

    run(o)


@app.command(
    "split",
    epilog=examples(
        "split data.svm.xz --nodes 50 --how label --alpha 0.3 --out shards",
        "solve --shards shards",
    ),
)
@with_options(SplitOptions)
def split(o: SplitOptions) -> None:
    """Deal a data set out to nodes, one file each, and a manifest of sizes and checksums."""
    from edgewise.cli.split import split as run

    run(o)


@app.command(
    "predict",
    epilog=examples(
        "predict out/newton-pd-20300101-120000 new.csv",
        "predict model new.csv --probabilities --output predictions.csv",
        "predict mesh/peer3 labelled.csv --label outcome",
    ),
)
@with_options(PredictOptions)
def predict(o: PredictOptions) -> None:
    """Predict with a saved model: one line a row, and how right it is where labels are there.

    Columns are found by their names, in any order; one that is missing or unknown is refused.
    """
    from edgewise.cli.predict import predict as run

    run(o)


@app.command(
    "report",
    epilog=examples(
        "report out/*",
        "report out/one out/two --x bytes_sent --y bregman --out picture.png",
    ),
)
@with_options(ReportOptions)
def report(o: ReportOptions) -> None:
    """A table of saved runs, and a page or a plot of them together."""
    from edgewise.cli.report import report as run

    run(o)


@app.command(
    "audit",
    epilog=examples(
        "solve breast_cancer --scale --nodes 10 --ridge 0.03 --method saga-pd --out run",
        "audit run",
        "audit run --coalition 0,5 --first 500 --json",
        "audit run --secret-draws --no-members",
        "audit run --dual-noise 1",
    ),
)
@with_options(RunAuditOptions)
def audit_run(o: RunAuditOptions) -> None:
    """What the messages of a run tell neighbours and others of the data, by attacks on them.

    The run is made again, with its data and settings. A neighbour, all neighbours of a node, a
    coalition, whoever gets the model and whoever listens are given what they would see, and no
    more; your data say how much they got: rows recovered (correlation above 0.99), whether samples
    can be told from others (AUC, 0.5 is nothing), and how well the share of a label at each node is
    told. Beside each number is what chance gives. Attacks are those of today: others may get more.
    """
    from edgewise.cli.audit import audit as run

    run(o)


@app.command(
    "reproduce",
    epilog=examples(
        "reproduce --list",
        "reproduce oracle",
        "reproduce --all",
        "reproduce oracle ring --scale paper --data epsilon_normalized.xz",
    ),
)
@with_options(ReproduceOptions)
def reproduce(o: ReproduceOptions) -> None:
    """Run an experiment of the paper, draw it, and say which of its claims hold.

    What is there already in the folder is not run again: an interrupted call can be repeated.
    """
    from edgewise.cli.reproduce import reproduce as run

    run(o)


@app.command("methods", epilog=examples("methods", "methods --json"))
@with_options(ListOptions)
def methods(o: ListOptions) -> None:
    """What there is, what each needs, and when to take it."""
    from edgewise.cli.methods import methods as run

    run(o)


@app.command("doctor", epilog=examples("doctor"))
@with_options(ListOptions)
def doctor(o: ListOptions) -> None:
    """Versions, devices and precision, and what is missing for which extra."""
    from edgewise.cli.doctor import doctor as run

    run(o)


@of_network.command(
    "init",
    epilog=examples(
        "network init --graph ring --nodes 8 --loss logistic --ridge 1e-2 --classes 0,1",
        "network init --edges who-knows-whom.txt --host peer{id}.example.org --out mesh",
        "network init --nodes 5 --penalty l1:1e-3 --penalty 3=box:-1,1 --mode strict",
        "network init --nodes 5 --schema schema.toml --standardize --ridge 0.01 --intercept",
    ),
)
@with_options(InitOptions)
def init(o: InitOptions) -> None:
    """Make a network of peers: an authority, and a key, a certificate and a TOML file for each.

    The files of a peer go to its host. Keys can be read by you alone.
    """
    from edgewise.cli.network import init as run

    run(o)


@of_network.command(
    "add", epilog=examples("network add mesh --neighbours 2,5 --host peer{id}.example.org")
)
@with_options(AddOptions)
def add(o: AddOptions) -> None:
    """Add a peer to a network, also while it runs: tolerant peers take it up at once."""
    from edgewise.cli.network import add as run

    run(o)


@of_network.command("leave", epilog=examples("network leave mesh 3"))
@with_options(LeaveOptions)
def leave(o: LeaveOptions) -> None:
    """Take a peer out of a network, also while it runs; its own files stay.

    The others go on to the optimum of their own data; the one that leaves is to be stopped.
    """
    from edgewise.cli.network import leave as run

    run(o)


@of_network.command("renew", epilog=examples("network renew mesh", "network renew mesh 3"))
@with_options(RenewOptions)
def renew(o: RenewOptions) -> None:
    """Make new keys and certificates; running peers take them up when they are copied."""
    from edgewise.cli.network_keys import renew as run

    run(o)


@of_network.command("request", epilog=examples("network request peer3.toml"))
@with_options(RequestOptions)
def request(o: RequestOptions) -> None:
    """Make a peer's key on its own host, and a request for a certificate to send to the authority.

    A key that is there is kept: ask again with it when its certificate is about to end.
    """
    from edgewise.cli.network_keys import request as run

    run(o)


@of_network.command("sign", epilog=examples("network sign mesh peer3.csr peer4.csr --days 365"))
@with_options(SignOptions)
def sign(o: SignOptions) -> None:
    """Make the certificates that hosts have requested, where the authority's key is."""
    from edgewise.cli.network_keys import sign as run

    run(o)


@of_network.command("revoke", epilog=examples("network revoke mesh 3"))
@with_options(RevokeOptions)
def revoke(o: RevokeOptions) -> None:
    """Take back all certificates that a peer has had, as when its key may have been stolen."""
    from edgewise.cli.network_keys import revoke as run

    run(o)


@of_network.command(
    "relay",
    epilog=examples(
        "network relay mesh --make", "network relay relay-files --listen 0.0.0.0:24690"
    ),
)
@with_options(RelayOptions)
def relay(o: RelayOptions) -> None:
    """Pass on what peers say to each other that cannot reach each other, until it is stopped.

    It needs authority.pem, relay.pem and relay.key in its folder, and learns who talks to whom and
    how much, but nothing of what: peers have TLS with each other, and its certificate is no peer's.
    """
    from edgewise.cli.network_relay import relay as run

    run(o)


@of_network.command(
    "audit",
    epilog=examples("network audit verify mesh/peer3", "network audit verify peer3 --head 5f1c..."),
)
@with_options(AuditOptions)
def audit(o: AuditOptions) -> None:
    """Verify what a peer has kept of who did what, with whom, and what left its host.

    Ends with 1 where a line was changed, dropped or put in.
    """
    from edgewise.cli.network_audit import audit as run

    run(o)


@of_network.command(
    "local",
    epilog=examples(
        "network local mesh --data breast_cancer --scale --normalize --how label",
        "network local mesh --shard hospital{id}.csv",
    ),
)
@with_options(LocalOptions)
def local(o: LocalOptions) -> None:
    """Start all peers of a mesh on this machine, with a data set split among them, to try it.

    Ctrl-C stops them, each with a checkpoint, and the same command goes on from there.
    """
    from edgewise.cli.network_local import local as run

    run(o)


@of_network.command(
    "schema", epilog=examples("network schema hospital.csv --label diagnosis --output schema.toml")
)
@with_options(SchemaOptions)
def schema(o: SchemaOptions) -> None:
    """Propose what all peers' tables are to hold, column by column, from one of them.

    Complete it, with units and the levels that others have, and give it to `network init`.
    """
    from edgewise.cli.network_schema import schema as run

    run(o)


@of_network.command("status", epilog=examples("network status mesh", "network status mesh --watch"))
@with_options(StatusOptions)
def status(o: StatusOptions) -> None:
    """How the peers of a mesh are doing, those that run on this machine."""
    from edgewise.cli.network_status import status as run

    run(o)


@of_network.command(
    "ui",
    epilog=examples("network ui mesh", "network ui mesh/peer3.toml http://127.0.0.1:9465 --port 0"),
)
@with_options(PageOptions)
def ui(o: PageOptions) -> None:
    """A page about the peers, on this machine: graph, residuals, speeds, bytes, alarms, live.

    It shows what peers' files and metrics say, can be read only, and is served to this machine
    alone. From another one, forward the port: ssh -L 24680:127.0.0.1:24680 host.
    """
    from edgewise.cli.network_ui import ui as run

    run(o)


@app.command(
    "node",
    epilog=examples(
        "node peer3.toml --shard my-data.npz",
        "node peer3.toml --shard my-data.npz --watch",
        "node peer3.toml --watch",
        "node peer3.toml --status --json",
    ),
)
@with_options(NodeOptions)
def node(o: NodeOptions) -> None:
    """Run one peer: it waits for its neighbours, fits with them, and keeps its model and trace.

    Start it again with the same command after a crash: it goes on from its checkpoint. --status
    and --watch without --shard look at one that runs on this machine, and leave it alone.
    """
    from edgewise.cli.node import node as run

    run(o)
