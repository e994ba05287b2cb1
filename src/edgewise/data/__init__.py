"""Samples: read them, name them, deal them out to nodes."""

from edgewise.data.folders import (
    FolderShards,
    load_node,
    load_shards,
    read_manifest,
    write_shards,
)
from edgewise.data.loading import load, read_csv
from edgewise.data.named import dataset, names
from edgewise.data.preparation import Preparation, Prepared, prepare
from edgewise.data.readers import read_libsvm, read_npz
from edgewise.data.scaling import Standardization
from edgewise.data.shards import Shards
from edgewise.data.splitting import split
from edgewise.data.stream import Stream
from edgewise.data.synthetic import epsilon_like
from edgewise.data.tables import read_table

__all__ = [
    "FolderShards",
    "Preparation",
    "Prepared",
    "Shards",
    "Standardization",
    "Stream",
    "dataset",
    "epsilon_like",
    "load",
    "load_node",
    "load_shards",
    "names",
    "prepare",
    "read_csv",
    "read_libsvm",
    "read_manifest",
    "read_npz",
    "read_table",
    "split",
    "write_shards",
]
