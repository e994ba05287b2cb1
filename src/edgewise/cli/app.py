"""The commands."""

from typing import Annotated

import typer

from edgewise import __version__
from edgewise.cli import (
    compare_and_tune,
    methods_and_doctor,
    network,
    network_local,
    network_status,
    node,
    report,
    reproduce,
    solve,
    split,
)
from edgewise.cli.network_options import (
    AddOptions,
    InitOptions,
    LeaveOptions,
    LocalOptions,
    NodeOptions,
    RenewOptions,
    StatusOptions,
)
from edgewise.cli.options import (
    CompareOptions,
    ListOptions,
    ReportOptions,
    ReproduceOptions,
    SolveOptions,
    SplitOptions,
    TuneOptions,
)
from edgewise.cli.shell import EXIT_CODES, taking

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


app.command(
    "solve",
    epilog=examples(
        "solve",
        "solve breast_cancer --scale --normalize --nodes 20 --how label --ridge 1e-2 --tol 1e-6",
        "solve data.svm.xz --graph ring --penalty l1:1e-3 --method svr-pd-es --rounds 20000",
        "solve --shards shards --loss squared --drop 0.2 --awake 0.5 --wipe 3:2000",
        "solve --config run.toml --seed 1 --json",
        "solve --resume out/saga-pd-20300101-120000 --rounds 40000",
    ),
)(taking(SolveOptions, otherwise=solve.DEMO)(solve.solve))

app.command(
    "compare",
    epilog=examples(
        "compare breast_cancer --scale --normalize --ridge 1e-2 --methods saga-pd,nids,gt-saga",
        "compare data.csv --loss squared --budget 5000 --per rounds --unit bytes_sent",
    ),
)(taking(CompareOptions)(compare_and_tune.compare))

app.command(
    "tune",
    epilog=examples(
        "tune breast_cancer --scale --normalize --ridge 1e-2 --method saga-pd --out tuned",
        "solve --config tuned/best.toml",
    ),
)(taking(TuneOptions)(compare_and_tune.tune))

app.command(
    "split",
    epilog=examples(
        "split data.svm.xz --nodes 50 --how label --alpha 0.3 --out shards",
        "solve --shards shards",
    ),
)(taking(SplitOptions)(split.split))

app.command(
    "report",
    epilog=examples(
        "report out/*",
        "report out/one out/two --x bytes_sent --y bregman --out picture.png",
    ),
)(taking(ReportOptions)(report.report))

app.command(
    "reproduce",
    epilog=examples(
        "reproduce --list",
        "reproduce oracle",
        "reproduce --all",
        "reproduce oracle ring --scale paper --data epsilon_normalized.xz",
    ),
)(taking(ReproduceOptions)(reproduce.reproduce))

app.command("methods", epilog=examples("methods", "methods --json"))(
    taking(ListOptions)(methods_and_doctor.methods)
)
app.command("doctor", epilog=examples("doctor"))(taking(ListOptions)(methods_and_doctor.doctor))

of_network.command(
    "init",
    epilog=examples(
        "network init --graph ring --nodes 8 --loss logistic --ridge 1e-2 --classes 0,1",
        "network init --edges who-knows-whom.txt --host peer{id}.example.org --out mesh",
        "network init --nodes 5 --penalty l1:1e-3 --penalty 3=box:-1,1 --mode strict",
    ),
)(taking(InitOptions)(network.init))
of_network.command(
    "add", epilog=examples("network add mesh --neighbours 2,5 --host peer{id}.example.org")
)(taking(AddOptions)(network.add))
of_network.command("leave", epilog=examples("network leave mesh 3"))(
    taking(LeaveOptions)(network.leave)
)
of_network.command("renew", epilog=examples("network renew mesh", "network renew mesh 3"))(
    taking(RenewOptions)(network.renew)
)
of_network.command(
    "local",
    epilog=examples("network local mesh --data breast_cancer --scale --normalize --how label"),
)(taking(LocalOptions)(network_local.local))
of_network.command("status", epilog=examples("network status mesh", "network status mesh --watch"))(
    taking(StatusOptions)(network_status.status)
)
app.command(
    "node",
    epilog=examples(
        "node peer3.toml --shard my-data.npz",
        "node peer3.toml --shard my-data.npz --watch",
        "node peer3.toml --watch",
        "node peer3.toml --status --json",
    ),
)(taking(NodeOptions)(node.node))
