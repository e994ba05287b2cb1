"""edgewise network schema"""

import sys
from pathlib import Path
from typing import Any

import edgewise as ew
from edgewise.cli.network_options import SchemaOptions
from edgewise.cli.shell import print_json
from edgewise.errors import InputError
from edgewise.fileio import write_text


def schema(o: SchemaOptions) -> None:
    from edgewise.peers.operations.proposal import proposed

    if o.data is None:
        raise InputError("no table: edgewise network schema hospital.csv --label diagnosis")
    named = [*(o.ignore or ()), *([] if o.label is None else [o.label])]
    how: dict[str, Any] = {"separator": o.separator, "decimal": o.decimal, "encoding": o.encoding}
    table = ew.data.read_table(o.data, **how, header=o.header, names=named)
    made, questions = proposed(table, o.label, o.ignore or (), o.regression)
    head = [
        f"proposed from {Path(o.data).name}: let all peers look at it, and then",
        "edgewise network init --schema FILE",
        *questions,
    ]
    text = "".join(f"# {line}\n" for line in head) + made.text()
    if o.json:
        print_json({"command": "network schema", "schema": made.table(), "decide": questions})
    elif o.output is None:
        sys.stdout.write(text)
    else:
        write_text(Path(o.output), text)
        print(f"{o.output}: {len(made.columns)} columns; look at it", file=sys.stderr)
