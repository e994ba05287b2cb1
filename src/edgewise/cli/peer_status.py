"""What a peer's files say of it."""

import json
import os
import time
from typing import TYPE_CHECKING, Any

import typer
from rich import filesize
from rich.table import Table

from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import PeerConfig

Status = dict[str, Any]
UNDER_WAY = ("agreeing", "waiting", "running", "scoring", "lingering")
STUCK_AFTER = 60.0  # seconds without a word of a process that has a word twice a second
DEAD = 4  # exit code, beside those of `Ending`


def show(configs: "list[PeerConfig]", o: Any) -> None:
    """Ends with the exit code of the worst of them: 4 if one has died or is stuck, else that of
    those that have ended; 0 for one that runs, or was never started."""
    from edgewise.peers.operations.expiry import warning

    statuses = [status_of(config) for config in configs]
    console = output(o)
    console.print(table_of(statuses))
    for told in filter(None, map(warning, configs)):
        console.print(told, style="yellow", highlight=False, soft_wrap=True)
    for told in alarms(statuses):
        console.print(told, style="red", highlight=False, soft_wrap=True, markup=False)
    if o.json:
        print_json({"command": "status", "peers": statuses})
    code = max(exit_code(one) for one in statuses)
    if code:
        raise typer.Exit(code)


def alarms(statuses: list[Status]) -> list[str]:
    """That hold, or held at the end."""
    return [
        f"peer {one['peer']}: ALARM: {text}" for one in statuses for text in one.get("alarms", ())
    ]


def exit_code(one: Status) -> int:
    if one["state"] in ("died", "stuck"):
        return DEAD
    return 0 if one["state"] in UNDER_WAY else int((one.get("ending") or {}).get("exit_code", 0))


def table_of(statuses: list[Status]) -> Table:
    coupled = any("violation" in one for one in statuses)
    further = ["violation", "there"] if coupled else ["neighbours there"]  # 80 columns are enough
    table = Table("peer", "state", "rounds", "residual", *further, "sent", "seen")
    for one in statuses:
        table.add_row(
            str(one["peer"]),
            one["state"],
            f"{one.get('rounds', 0):,.0f}",
            residual_of(one),
            *([number(one.get("violation"))] if coupled else []),
            there(one),
            filesize.decimal(int(one.get("bytes_sent", 0))),
            f"{time.time() - one['time']:.0f} s ago" if "time" in one else "never",
        )
    return table


def residual_of(one: Status) -> str:
    ending = one.get("ending") or {}
    goal = "" if ending.get("tol") is None else "tol met" if ending["met"] else "tol NOT met"
    return " ".join(part for part in (number(one.get("residual")), goal, absent(one)) if part)


def absent(one: Status) -> str:
    """Whom the residual does not speak of: one that has been silent is in it as it was then."""
    away = one.get("away") or {}
    without = ", ".join(f"{j} since round {since}" for j, since in away.items())
    if without or not one.get("lost_hops"):
        return f"(without {without})" if without else ""
    return "(a neighbour lost one)" if one["lost_hops"] == 1 else "(one is lost further off)"


def there(one: Status) -> str:
    around = one.get("neighbours", {}).values()
    return f"{sum(bool(n.get('connected')) for n in around)} of {len(around)}" if around else ""


def number(value: float | None, form: str = ".2e") -> str:
    return "" if value is None else format(value, form)


def status_of(config: "PeerConfig", pid: int | None = None) -> Status:
    """What the peer wrote last, if it is the process of that number: it may have run before."""
    path = config.out / "status.json"
    starting = {"peer": config.id, "state": "not started" if pid is None else "starting"}
    try:
        status: Status = {"state": "unknown", **json.loads(path.read_text()), "peer": config.id}
    except FileNotFoundError:
        return starting
    except (OSError, ValueError, TypeError) as problem:
        if pid is not None:
            return starting
        raise InputError(f"{path} cannot be read ({problem})") from None
    if pid is not None and status.get("pid") != pid:
        return starting
    if status["state"] in UNDER_WAY and not alive(status.get("pid")):
        status["state"] = "died"
    elif status["state"] in UNDER_WAY and silent(status) > STUCK_AFTER:
        status["state"] = "stuck"
    return status


def silent(status: Status) -> float:
    return time.time() - status["time"] if "time" in status else 0.0


def alive(pid: int | None) -> bool:
    if pid is None:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
