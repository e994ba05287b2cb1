"""Shards on disk: a folder with one npz file per node and a manifest of their checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from edgewise.data.arrays import Array, Matrix, aligned_empty, as_matrix
from edgewise.data.preparation import Preparation
from edgewise.data.readers import read_npz
from edgewise.data.scaling import Standardization
from edgewise.data.shards import TERMS, Shards, as_counts, as_names
from edgewise.data.splitting import MOST_CLASSES
from edgewise.errors import DataError
from edgewise.fileio import make_folder, write_json

MANIFEST = "manifest.json"
OF_ROWS = ("order", "lines", *TERMS)
FORMAT = {"format": "edgewise-shards", "version": 1}


def write_shards(
    folder: str | PathLike[str], shards: Shards, about: Mapping[str, Any] | None = None
) -> Path:
    """Write one file per node, then the manifest: a folder without one was not finished.

    A node's file holds X and y (or y with the parts of a CSR matrix), as `load` reads them, and
    `order`, the rows of the data set that was split; where they are known, `lines` of its file and
    `columns`, names. `about` is kept in the manifest.
    """
    folder = Path(folder)
    if (folder / MANIFEST).exists():
        raise DataError(f"{folder} holds shards already: give another folder, or delete it")
    make_folder(folder, "give another folder (--out)", exist_ok=True)
    digits = len(str(shards.nodes - 1))
    files = []
    for node, (X, y) in enumerate(shards):
        path = folder / f"node-{node:0{digits}d}.npz"
        arrays = {"y": y, **stored_arrays(X)}
        first = int(shards.first[node])
        for name in OF_ROWS:
            if (origin := getattr(shards, name)) is not None:
                arrays[name] = origin[first : first + len(y)]
        if shards.columns is not None:  # a peer gets this file alone
            arrays["columns"] = np.array(shards.columns)
        np.savez(path, **arrays)  # type: ignore[arg-type]
        files.append({"file": path.name, "samples": len(y), "sha256": digest(path)})
    manifest = {
        **FORMAT,
        "nodes": shards.nodes,
        "samples": shards.samples,
        "features": shards.features,
        "dtype": str(shards.X.dtype),
        "sparse": not isinstance(shards.X, np.ndarray),
        "columns": None if shards.columns is None else list(shards.columns),
        "labels": describe_labels(shards.y),
        "scaling": None if shards.scaling is None else shards.scaling.to_dict(),
        "preparation": None if shards.preparation is None else shards.preparation.to_dict(),
        "terms": [name for name in TERMS if getattr(shards, name) is not None],
        "about": dict(about or {}),
        "shards": files,
    }
    write_json(folder / MANIFEST, manifest)
    return folder


def read_manifest(folder: str | PathLike[str]) -> dict[str, Any]:
    """What the folder says it holds: nodes, samples, features, labels and the files."""
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_text())
    except FileNotFoundError:
        raise DataError(
            f"{folder} has no {MANIFEST}: it is no folder of shards, or was not written to the "
            "end; make one with `edgewise split`"
        ) from None
    except (OSError, ValueError) as problem:
        raise DataError(f"{path} cannot be read ({problem}): split the data again") from None
    needed = {*FORMAT, "nodes", "samples", "features", "dtype", "sparse", "labels", "shards"}
    known = isinstance(manifest, dict) and needed <= manifest.keys()
    if not known or {k: manifest[k] for k in FORMAT} != FORMAT:
        raise DataError(f"{path} is no manifest of shards, version 1: split the data again")
    try:
        sizes = [entry["samples"] for entry in manifest["shards"]]
        adds_up = (len(sizes), sum(sizes)) == (manifest["nodes"], manifest["samples"])
    except (KeyError, TypeError):
        adds_up = False
    if not adds_up:
        raise DataError(f"{path} lists other shards than it counts: split the data again")
    return dict(manifest)


def load_node(
    folder: str | PathLike[str], node: int, manifest: Mapping[str, Any] | None = None
) -> tuple[Matrix, Array, Array | None]:
    """X, y and order of one node, its file held against the manifest; no other file is read."""
    X, y, of_rows = read_node(folder, node, manifest)
    return X, y, of_rows.get("order")


def read_node(
    folder: str | PathLike[str], node: int, manifest: Mapping[str, Any] | None
) -> tuple[Matrix, Array, dict[str, Array]]:
    """X, y, and what else is known of rows."""
    manifest = read_manifest(folder) if manifest is None else manifest
    if not 0 <= node < manifest["nodes"]:
        raise DataError(f"{folder} has no node {node}: nodes are 0 to {manifest['nodes'] - 1}")
    entry = manifest["shards"][node]
    path = Path(folder) / entry["file"]
    if not path.is_file():
        raise DataError(f"the shard of node {node}, {path}, is missing: copy or split it again")
    if digest(path) != entry["sha256"]:
        raise DataError(
            f"the shard of node {node}, {path}, is damaged or was changed: its SHA-256 is not the "
            f"one in {MANIFEST}; copy or split it again"
        )
    X, y = read_npz(path, dtype=manifest["dtype"], dense=not manifest["sparse"])
    if X.shape != (entry["samples"], manifest["features"]):
        raise DataError(f"{path} has shape {X.shape}, not as {MANIFEST} says: split the data again")
    with np.load(path, allow_pickle=False) as file:
        return X, y, {name: file[name] for name in OF_ROWS if name in file.files}


class FolderShards:
    """The shards of a folder, read when they are asked for.

    Sizes, types and classes are the manifest's. X, y and order read every file, once; `of` reads
    the files of some nodes and no other. Each file is held against its checksum.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder, self.manifest = Path(folder), read_manifest(folder)
        self.counts = as_counts([entry["samples"] for entry in self.manifest["shards"]])
        self.first: NDArray[np.int64] = np.cumsum(self.counts) - self.counts
        self.nodes, self.samples = len(self.counts), int(self.counts.sum())
        self.features = int(self.manifest["features"])
        self.dtype, self.sparse = np.dtype(self.manifest["dtype"]), bool(self.manifest["sparse"])
        self.label_dtype = np.dtype(self.manifest["labels"]["dtype"])
        scaling = self.manifest.get("scaling")
        self.scaling = None if scaling is None else Standardization.from_dict(scaling)
        prepared = self.manifest.get("preparation")
        self.preparation = None if prepared is None else Preparation.from_dict(prepared)
        self.terms = tuple(self.manifest.get("terms", ()))  # folders of older versions have none
        names = self.manifest.get("columns")
        self.columns = None if names is None else as_names(names, self.features)

    @property
    def classes(self) -> Array | None:
        """The labels that there are, sorted; None where they are too many, or no whole numbers."""
        classes = self.manifest["labels"]["classes"]
        return None if classes is None else np.array(classes, self.label_dtype)

    @cached_property
    def whole(self) -> Shards:
        return self._read(range(self.nodes))

    @property
    def X(self) -> Matrix:
        return self.whole.X

    @property
    def y(self) -> Array:
        return self.whole.y

    @property
    def order(self) -> NDArray[np.int64] | None:
        return self.whole.order

    def of(self, nodes: Sequence[int] | NDArray[np.int64]) -> Shards:
        """The shards of some of the nodes."""
        return self.whole.of(nodes) if "whole" in vars(self) else self._read(nodes)

    def __len__(self) -> int:
        return self.nodes

    def __getitem__(self, node: int) -> tuple[Matrix, Array]:
        return self.whole[node]

    def __iter__(self) -> Iterator[tuple[Matrix, Array]]:
        return iter(self.whole)

    def _read(self, nodes: Sequence[int] | NDArray[np.int64]) -> Shards:
        """In one allocation where X is dense."""
        counts = self.counts[nodes]
        shape = (int(counts.sum()), self.features)
        joined = None if self.sparse else aligned_empty(shape, self.dtype)
        blocks: list[Any] = []
        labels: list[Array] = []
        origins: dict[str, list[Array]] = {name: [] for name in OF_ROWS}
        for node, end in zip(nodes, np.cumsum(counts), strict=True):
            X, y, known = read_node(self.folder, int(node), self.manifest)
            labels.append(y)
            for name, one in known.items():
                origins[name].append(one)
            if joined is None:
                blocks.append(X)
            else:
                joined[end - len(y) : end] = X
        matrix = as_matrix(sp.vstack(blocks, format="csr")) if joined is None else joined
        origin = {
            name: np.concatenate(kept) for name, kept in origins.items() if len(kept) == len(labels)
        }
        return Shards(
            matrix,
            np.concatenate(labels),
            counts,
            columns=self.columns,
            scaling=self.scaling,
            preparation=self.preparation,
            **origin,
        )


def load_shards(folder: str | PathLike[str]) -> Shards:
    """All nodes, every file held against its checksum, in one allocation where X is dense."""
    return FolderShards(folder).whole


def stored_arrays(X: Any) -> dict[str, Array]:
    if isinstance(X, np.ndarray):
        return {"X": X}
    shape = np.array(X.shape, np.int64)
    return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": shape}


def describe_labels(y: Array) -> dict[str, Any]:
    """Their kind, and the classes where they look like classes: a single node sees but some."""
    kind = "text" if y.dtype.kind in "US" else "numbers"
    values = np.unique(y.astype(str) if kind == "text" else y)
    whole = kind == "text" or bool((values == np.rint(values)).all())
    few = whole and len(values) <= MOST_CLASSES
    return {"kind": kind, "dtype": str(y.dtype), "classes": values.tolist() if few else None}


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
