"""edgewise split"""

from edgewise.cli.inputs import split_samples, what_was_done
from edgewise.cli.options import SplitOptions
from edgewise.cli.shell import output, print_json
from edgewise.data import read_manifest, write_shards


def split(o: SplitOptions) -> None:
    shards = split_samples(o)
    about = {"data": o.data, "how": o.how, "alpha": o.alpha}
    folder = write_shards(o.out, shards, about)
    counts = shards.counts
    for what in what_was_done(shards):
        output(o).print(what, highlight=False)
    output(o).print(
        f"{shards.samples} samples at {shards.nodes} nodes, {counts.min()} to {counts.max()} each, "
        f"{shards.features} features: in {folder}",
        highlight=False,
    )
    if o.json:
        manifest = read_manifest(folder)
        sizes = {"counts": [s["samples"] for s in manifest.pop("shards")]}
        for name in ("about", "scaling", "preparation"):
            del manifest[name]
        print_json({"command": "split", "folder": str(folder)} | manifest | sizes)
