"""What benchmarks/defaults.py says of its runs."""

import math
from typing import NamedTuple

TOL, NEAR = 1e-6, 1e-5  # the residual to reach, and how near the coefficients have to be then
FEW = 500  # rounds that should do in nine of ten settings
MOST = 2000  # rounds that should do in all


class Row(NamedTuple):
    """What one run came to."""

    setting: str
    method: str
    outcome: str = ""  # reached; or how it failed
    rounds: float = math.nan
    calls: float = math.nan  # mean per node
    megabytes: float = math.nan
    seconds: float = math.nan
    residual: float = math.nan
    difference: float = math.nan  # from the centralised coefficients
    wall: float = math.nan  # seconds, compiling and measuring included
    chosen: str = ""  # what the method calls itself

    @property
    def reached(self) -> bool:
        return self.outcome == "reached"

    def within(self, rounds: int) -> bool:
        return self.reached and self.rounds <= rounds

    @property
    def near(self) -> bool:
        return self.reached and self.difference <= NEAR

    @property
    def skipped(self) -> bool:
        return self.outcome.startswith("skipped")


def line(row: Row) -> str:
    told = f"{row.setting:40s} {row.method:10s}"
    if math.isnan(row.rounds):
        return f"{told} {row.outcome}"
    return (
        f"{told} {row.rounds:6.0f} rounds {row.calls:11,.0f} calls {row.megabytes:8.2f} MB "
        f"{row.seconds:7.2f} s ({row.wall:5.1f})  residual {row.residual:.0e}  "
        f"off by {row.difference:.0e}  {row.outcome}"
    )


def summary(rows: list[Row], method: str) -> str:
    own = [r for r in rows if r.method == method and not r.skipped]
    left_out = sum(r.method == method for r in rows) - len(own)
    few, most = (sum(r.within(n) for r in own) for n in (FEW, MOST))
    near, total = sum(r.near for r in own), len(own)
    return (
        f"{method}: within {FEW} rounds: {few} of {total}; within {MOST:,}: {most} of {total}; "
        f"coefficients to {NEAR:.0e}: {near} of {total}"
        + (f"; {left_out} skipped" if left_out else "")
    )


def markdown(rows: list[Row]) -> str:
    head = "| setting | method | rounds | calls | MB | seconds | residual | off by | |"
    lines = [head, "|---|---|--:|--:|--:|--:|--:|--:|---|"]
    for r in rows:
        numbers = (
            f"{r.rounds:,.0f} | {r.calls:,.0f} | {r.megabytes:.3g} | {r.seconds:.2g} | "
            f"{r.residual:.0e} | {r.difference:.0e}"
        )
        cells = " | ".join("-" * 6) if math.isnan(r.rounds) else numbers
        outcome = "" if r.reached else r.outcome
        lines.append(f"| {r.setting} | `{r.method}` | {cells} | {outcome} |")
    ends = [summary(rows, m) for m in dict.fromkeys(r.method for r in rows)]
    return "\n".join([*lines, "", *ends]) + "\n"
