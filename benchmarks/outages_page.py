"""The table of docs/operations.md that docs/data/outages.json has the numbers of."""

from pathlib import Path
from typing import Any

from libraries_page import between

BEGIN, END = "<!-- made by benchmarks/outages.py -->", "<!-- end of outages.py's -->"
MOST_SHOWN = 150  # letters of what is seen
WHAT_TO_DO = {
    "killed": "nothing, if a service manager starts it again; else start it",
    "started again": "nothing: it goes on from its checkpoint",
    "gone for good": "bring it back, or `network leave` and `revoke`; without it, start all anew",
    "frozen": "look at its host; it takes part again by itself",
    "an edge cut": "look at the line; others go on, and what went by it comes by other peers",
    "relay down": "start the relay; peers come back by themselves",
    "disk full": "make room; the model is where the end says",
    "disk full, at the start": "make room, start it again",
    "clock ahead": "set the clock (NTP)",
    "clock behind": "set the clock (NTP)",
    "certificate expired": "`network renew`, or `request` and `sign`; it comes back by itself",
    "certificate expired, at the start": "the same, then start it",
    "revoked": "if it is to stay: `network renew`, or `request` and `sign`",
    "other settings": "the same `[fit]` in all TOML files; start both",
    "other data": "the data as they were; or delete the peer's folder",
    "port taken": "end what is there, or change `listen`",
    "another version": "one release everywhere ([upgrades](#upgrades)); start both",
    "another version, under way": "the same, for the one that came back",
}


def table(kept: dict[str, Any]) -> str:
    out = [
        "| what happens | what is seen | after | back after | exit code | what to do |",
        "|---|---|--:|--:|---|---|",
    ]
    for name, to_do in WHAT_TO_DO.items():
        if name not in kept:
            out.append(f"| {name} | not tried | | | | {to_do} |")
            continue
        row = kept[name]
        told = [name, f"`{shown(row['seen'])}`", seconds(row.get("seconds"))]
        out.append("| " + " | ".join([*told, seconds(row.get("back")), codes(row), to_do]) + " |")
    return "\n".join(out)


def shown(text: str) -> str:
    text = text.replace("|", "/").replace("`", "'")
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN].rpartition(" ")[0] + " ..."


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


def codes(row: dict[str, Any]) -> str:
    if "status code" in row:
        return f"`--status`: {row['status code']}"
    if "exit code of the other" in row:
        return f"{row['exit code']}; the other's {row['exit code of the other']}"
    return str(row.get("exit code", "none ends"))


def write(page: Path, kept: dict[str, Any]) -> None:
    page.write_text(between(page.read_text(), BEGIN, END, table(kept)))
