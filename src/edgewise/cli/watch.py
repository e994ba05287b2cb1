"""Views of peers that run: live on a terminal, else a line now and then"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box, filesize
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from edgewise.cli.peer_status import UNDER_WAY, Status, absent, number, status_of, table_of, there
from edgewise.cli.peer_view import PeerView, curve
from edgewise.errors import InputError

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import PeerConfig

MOMENT = 0.5  # seconds between two looks: peers write their files as often
NOW_AND_THEN = 10.0  # seconds between two plain lines
LINES = 6  # of the log, under the view of a peer


def follow(
    console: Console,
    draw: Callable[[], RenderableType],
    say: Callable[[], str],
    over: Callable[[float], bool],
    stays: bool = True,
) -> None:
    """Until it is over, which is asked with the seconds to wait for that; the end is shown too,
    and stays on the terminal unless something better follows."""
    if console.is_terminal and not console.quiet:
        with Live(
            console=console, auto_refresh=False, redirect_stderr=False, transient=not stays
        ) as live:
            ended = False
            while not ended:
                ended = over(MOMENT)
                live.update(draw(), refresh=True)
        return
    shown, ended = "", False
    while not ended:
        if shown != (shown := say()):
            console.print(shown, highlight=False, markup=False, soft_wrap=True)
        ended = over(NOW_AND_THEN)
    if shown != (last := say()):
        console.print(last, highlight=False, markup=False, soft_wrap=True)


def on_a_terminal() -> bool:
    return Console().is_terminal


# --- one peer -------------------------------------------------------------------------------------


def watch(config: "PeerConfig") -> None:
    """A peer that another process runs, from its files alone."""
    peer, console = PeerView(config), Console()
    if peer.status["state"] == "not started":
        raise InputError(
            f"peer {config.id} has not been started, there is no {config.out}/status.json: "
            "--watch with --shard FILE runs it"
        )

    def over(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while peer.under_way and time.monotonic() < until:
            time.sleep(MOMENT)
            peer.refresh()
        return not peer.under_way

    try:
        follow(console, lambda: view(peer), lambda: line(peer), over)
    except KeyboardInterrupt:
        console.print(f"peer {config.id} goes on, unwatched")


@contextmanager
def watching(config: "PeerConfig", pid: int, lines: Sequence[str]) -> Iterator[None]:
    """A view of the peer that runs in the block; signals and the fit need the main thread."""
    peer, ended = PeerView(config, pid), threading.Event()

    def refreshed() -> PeerView:
        peer.refresh()
        return peer

    def keep_showing() -> None:
        follow(Console(), lambda: view(refreshed(), lines), lambda: line(refreshed()), ended.wait)

    thread = threading.Thread(target=keep_showing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def line(peer: PeerView) -> str:
    status, fit = peer.status, peer.config.fit
    clauses = [
        f"peer {status['peer']}: {status['state']}",
        f"round {status.get('rounds', 0):,.0f} of {fit.rounds:,}",
        f"{peer.per_second('rounds'):,.1f} a second",
    ]
    if status.get("residual") is not None:
        clauses.append(f"residual {status['residual']:.2e} {absent(status)}".rstrip())
    if there(status):
        clauses.append(f"{there(status)} neighbours there")
    return ", ".join([*clauses, f"{size(status.get('bytes_sent'))} sent"])


def view(peer: PeerView, lines: Sequence[str] = ()) -> RenderableType:
    title = f"peer {peer.config.id} of {peer.config.mesh}"
    panels: list[RenderableType] = [Panel(facts(peer), title=title, title_align="left")]
    if peer.status.get("neighbours"):
        panels.append(neighbours(peer.status))
    if lines:
        text = Text("\n".join(list(lines)[-LINES:]), overflow="ellipsis", no_wrap=True)
        panels.append(Panel(text, title="log", title_align="left"))
    return Group(*panels)


def facts(peer: PeerView) -> Table:
    status, fit = peer.status, peer.config.fit
    at_a_peer = None if fit.tol is None else fit.tol / np.sqrt(peer.config.nodes)
    goal = "" if at_a_peer is None else f"   stops at {at_a_peer:.2e} (tol {fit.tol:g} for all)"
    speeds = peer.per_second("rounds"), peer.per_second("bytes_sent")
    grid = Table.grid(padding=(0, 2))
    for name, value in {
        "state": status["state"],
        "method": status.get("method_note") or status.get("method") or fit.method,
        "round": f"{status.get('rounds', 0):,.0f} of {fit.rounds:,}   {speeds[0]:,.1f} a second",
        "seconds": number(status.get("seconds"), ",.1f"),
        "residual": f"{number(status.get('residual'))} {absent(status)}".rstrip() + goal,
        "": curve(peer.trace.points, 60),
        "objective": number(status.get("objective"), ".10g"),
        "oracle calls": number(status.get("oracle_calls"), ",.0f"),
        "sent": f"{size(status.get('bytes_sent'))}   {size(speeds[1])} a second",
        "turned away": f"{status.get('refused', 0)} strangers, {status.get('handshakes', 0)} "
        "failed TLS handshakes",
    }.items():
        grid.add_row(Text(name, style="dim"), Text(value))
    for text in status.get("alarms", ()):
        grid.add_row(Text("ALARM", style="red"), Text(text, style="red"))
    return grid


def neighbours(status: Status) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in "neighbour", "", "behind", "silent", "sent", "heard", "reconnects", "errors":
        table.add_column(column, justify="left" if column in ("neighbour", "") else "right")
    for other, one in status["neighbours"].items():
        state = "connected" if one.get("connected") else "away"
        table.add_row(
            other,
            Text(
                state if one.get("part", True) else f"{state}, takes no part",
                style="green" if one.get("connected") else "red",
            ),
            number(one.get("behind"), ",.0f"),
            f"{one.get('silent_seconds', 0):.1f} s",
            size(one.get("bytes_sent")),
            size(one.get("bytes_heard")),
            str(max(one.get("streams", 0) - 1, 0)),
            str(one.get("protocol_errors", 0)),
        )
    return table


def size(count: float | None) -> str:
    return filesize.decimal(int(count or 0))


# --- all peers of a mesh --------------------------------------------------------------------------


def watch_all(configs: "list[PeerConfig]", o: Any) -> None:
    """Until none of them is under way any more."""
    require_no_json(o)

    def statuses() -> list[Status]:
        return [status_of(config) for config in configs]

    def over(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while any(one["state"] in UNDER_WAY for one in statuses()):
            if time.monotonic() >= until:
                return False
            time.sleep(MOMENT)
        return True

    console = Console()
    try:
        follow(console, lambda: table_of(statuses()), lambda: summary(statuses()), over)
    except KeyboardInterrupt:
        console.print("the peers go on, unwatched")


def summary(statuses: list[Status]) -> str:
    """One line for all."""
    states = [one["state"] for one in statuses]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    rounds = [one.get("rounds", 0) for one in statuses]
    residuals = [one["residual"] for one in statuses if one.get("residual") is not None]
    worst = f", residuals up to {max(residuals):.2e}" if residuals else ""
    missed = {j for one in statuses for j in one.get("away") or {}}
    worst += f", without {', '.join(sorted(missed, key=int))}" if missed else ""
    told = sum(len(one.get("alarms", ())) for one in statuses)
    worst += f", {told} ALARM{'S' if told > 1 else ''}: see --status" if told else ""
    return f"{counts}: rounds {min(rounds):,.0f} to {max(rounds):,.0f}{worst}"


def require_no_json(o: Any) -> None:
    if o.json:
        raise InputError("--watch is a view for people: leave out --json, or ask for the status")
