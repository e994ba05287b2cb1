"""edgewise audit"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

import edgewise as ew
from edgewise import __version__, spec
from edgewise.cli.inputs import make_inputs, numbers
from edgewise.cli.options import RunAuditOptions, SolveOptions
from edgewise.cli.shell import output, plain, print_json
from edgewise.cli.solve import privacy_of
from edgewise.errors import InputError
from edgewise.fileio import write_json
from edgewise.running import run_folders

FILE = "audit.json"
OF_SOLVE = {f.name: f.default for f in fields(SolveOptions)}
NOT_REPLAYED = (
    *("drop", "burst", "delay", "awake", "nap", "down", "wipe", "leave", "join", "keep"),
    *("liars", "patience", "x0", "duals"),
)


def audit(o: RunAuditOptions) -> None:
    if o.run is None:
        raise InputError("say which run: edgewise audit out/saga-pd-20300101-120000")
    saved = run_folders.load_run(o.run)
    if saved.config["command"] != "solve":
        raise InputError(f"{o.run} is of `{saved.config['command']}`: give a run of `solve`")
    run = SolveOptions(**{k: v for k, v in saved.config.items() if k in OF_SOLVE})
    coalition = None
    if o.coalition is not None:
        coalition = np.array(numbers("coalition", o.coalition)).astype(int)
    console, inputs = output(o), make_inputs(run)
    privacy = privacy_of(run)
    if privacy is not None:
        privacy = replace(privacy, rounds=min(run.rounds, privacy.rounds))
    found = ew.audit(
        inputs.problem,
        inputs.graph,
        spec.method(run.method, run.set),
        o.first,
        run.seed,
        spec.steps(run.eta),
        spec.steps(run.rho),
        coalition=coalition,
        privacy=privacy,
        dual_noise=o.dual_noise,
        bits=run.bits if o.bits is None else o.bits,
        secret_draws=o.secret_draws,
        members=o.members,
        patient=o.patient,
    )
    left_out = [k for k in NOT_REPLAYED if getattr(run, k) != OF_SOLVE[k]]
    if left_out:
        named = ", ".join("--" + k.replace("_", "-") for k in left_out)
        found.not_tried.append(f"the run had {named}: it is replayed without")
    if privacy is not None:
        found.assumed.append("the run was private, and its noise is not kept: it is drawn anew")
    console.print(table(found))
    for line in told(found):
        console.print(line, highlight=False)
    path = Path(o.out) if o.out else saved.folder / FILE
    kept = plain({"command": "audit", "version": __version__, "run": o.run} | found.to_dict())
    write_json(path, kept)
    console.print(f"audit: {path}", highlight=False, soft_wrap=True)
    if o.json:
        print_json(kept)


def table(found: ew.Audit) -> Table:
    title = f"what the messages of {found.rounds} rounds of {found.method} tell"
    made = Table(title=title, box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for name in ("who", "attack", "measure"):
        made.add_column(name)
    for name in ("got", "by chance", "of"):
        made.add_column(name, justify="right", no_wrap=True)
    last: Any = None
    for f in found.findings:
        who = "" if f.who == last else f.who
        error = "" if np.isnan(f.error) else f" ± {f.error:.2f}"
        made.add_row(
            who, f.attack, f.measure, f"{f.got:.2f}{error}", f"{f.chance:.2f}", f"{f.of:,}"
        )
        last = f.who
    return made


def told(found: ew.Audit) -> list[str]:
    line = found.line
    lengths = (
        "all of one length: nothing about values"
        if line.sizes == 1
        else f"{line.matrices} of them longer, by a matrix: when curvature was told, and no values"
    )
    return [
        f"who listens on the line: messages of {line.message_bytes:,.0f} bytes, {lengths}",
        *(f"known: {what}" for what in found.assumed),
        *(f"not tried: {what}" for what in found.not_tried),
    ]
