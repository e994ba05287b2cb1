"""Samples: read them, name them, deal them out to nodes."""

from edgewise.data.named import dataset, names
from edgewise.data.readers import load, read_csv, read_libsvm, read_npz
from edgewise.data.shards import Shards
from edgewise.data.split import split
from edgewise.data.stream import Stream
from edgewise.data.synthetic import epsilon_like

__all__ = [
    "Shards",
    "Stream",
    "dataset",
    "epsilon_like",
    "load",
    "names",
    "read_csv",
    "read_libsvm",
    "read_npz",
    "split",
]
