"""Samples: read them, name them, deal them out to nodes."""

from edgewise.data.folders import (
    FolderShards,
    load_node,
    load_shards,
    read_manifest,
    write_shards,
)
from edgewise.data.named import dataset, names
from edgewise.data.readers import load, read_csv, read_libsvm, read_npz
from edgewise.data.shards import Shards
from edgewise.data.splitting import split
from edgewise.data.stream import Stream
from edgewise.data.synthetic import epsilon_like

__all__ = [
    "FolderShards",
    "Shards",
    "Stream",
    "dataset",
    "epsilon_like",
    "load",
    "load_node",
    "load_shards",
    "names",
    "read_csv",
    "read_libsvm",
    "read_manifest",
    "read_npz",
    "split",
    "write_shards",
]
