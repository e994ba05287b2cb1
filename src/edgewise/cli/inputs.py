"""From options to what `solve` takes: samples, a problem, a graph, faults, an engine."""

from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edgewise as ew
from edgewise import spec
from edgewise.cli.option_groups import DataOptions, FaultOptions, ProblemOptions, RunOptions
from edgewise.cli.shell import launched_process
from edgewise.data.folders import FolderShards
from edgewise.data.shards import Array, Matrix
from edgewise.errors import DataError, InputError, UnknownName


class Inputs(NamedTuple):
    problem: ew.Problem
    graph: ew.Graph
    preprocessing: dict[str, Any]


def make_inputs(o: ProblemOptions) -> Inputs:
    shards, preprocessing = load_shards(o)
    problem = ew.Problem(
        shards,
        loss=spec.loss(o.loss, o.ridge),
        penalty=spec.penalty(o.penalty, shards.nodes),
        weights=o.weights,
        sample_weight=read_weights(o.sample_weight),
        intercept=o.intercept,
    )
    return Inputs(problem, make_graph(o, shards.nodes), preprocessing)


def make_graph(o: ProblemOptions, nodes: int) -> ew.Graph:
    seed = o.seed if o.graph_seed is None else o.graph_seed
    return spec.graph(o.graph, nodes, seed, graph_size(o))


def graph_size(o: Any) -> spec.GraphSize:
    return spec.GraphSize(*(getattr(o, name) for name in spec.GraphSize._fields))


def make_faults(o: FaultOptions) -> ew.Faults | None:
    apart = ("feedback", "fault_seed")
    given = {f.name: getattr(o, f.name) for f in fields(FaultOptions) if f.name not in apart}
    return spec.faults(given, o.feedback, o.fault_seed)


def make_engine(o: RunOptions) -> ew.MPI | None:
    if o.engine == "mpi":
        return ew.MPI(partition=o.partition)
    if o.engine != "simulator":
        raise UnknownName("engine", o.engine, ["simulator", "mpi"])
    ranks = launched_process().ranks
    if ranks > 1:
        raise InputError(
            f"{ranks} processes were started to do the same each: give --engine mpi for "
            "them to share the nodes, or start one"
        )
    return None


def numbers(name: str, text: str) -> list[float]:
    """Of an option that takes several."""
    try:
        return spec.numbers_in(text)
    except ValueError:
        raise InputError(
            f"--{name} {text!r} cannot be read: give numbers with commas between"
        ) from None


def load_shards(o: ProblemOptions) -> tuple[ew.Shards | FolderShards, dict[str, Any]]:
    folder = o.shards
    if o.data is not None and folder is not None:
        raise DataError(f"both data ({o.data}) and shards ({folder}) are given: leave one out")
    if o.data is not None and Path(o.data).is_dir():
        folder = o.data
    if folder is None:
        return split_samples(o)
    shards = FolderShards(folder)
    before = shards.manifest.get("about", {}).get("preprocessing", {})
    if o.nodes not in (None, shards.nodes):
        raise DataError(f"{folder} has {shards.nodes} nodes, not {o.nodes}: leave --nodes out")
    if before and (o.scale or o.normalize):
        raise DataError(f"{folder} was scaled when it was split: leave --scale, --normalize out")
    if not (o.scale or o.normalize):
        return shards, before
    X, after = preprocess(shards.X, o)
    return ew.Shards(X, shards.y, shards.counts, shards.order), after


def split_samples(o: DataOptions) -> tuple[ew.Shards, dict[str, Any]]:
    X, y = load_samples(o)
    X, preprocessing = preprocess(X, o)
    nodes = 10 if o.nodes is None else o.nodes
    seed = o.seed if o.split_seed is None else o.split_seed
    return ew.split(X, y, nodes, o.how, seed, o.alpha), preprocessing


def load_samples(o: DataOptions) -> tuple[Matrix, Array]:
    """A file if there is one, else a named set."""
    if o.data is None:
        raise DataError(f"no data: give a file or a name, one of {', '.join(ew.data.names())}")
    path = Path(o.data)
    if path.is_file() or path.suffix in (".npz", ".csv", ".svm", ".libsvm", ".gz", ".bz2", ".xz"):
        return ew.data.load(path, o.features, dense=o.dense, label=o.label)
    if o.data not in ew.data.names():
        raise UnknownName("file or data set", o.data, ew.data.names())
    X, y = ew.data.dataset(o.data)
    return X, y


def preprocess(X: Matrix, o: DataOptions) -> tuple[Matrix, dict[str, Any]]:
    """X scaled as asked, and how, for the model to remember."""
    from sklearn.preprocessing import StandardScaler, normalize

    how: dict[str, Any] = {}
    if o.scale:
        scaler = StandardScaler(with_mean=isinstance(X, np.ndarray))
        X = scaler.fit_transform(X)
        mean = scaler.mean_.tolist() if scaler.with_mean else None
        how |= {"mean": mean, "scale": scaler.scale_.tolist()}
    if o.normalize:
        X = normalize(X)
        how["normalize"] = True
    return X, how


def read_weights(path: str | None) -> Array | None:
    if path is None:
        return None
    try:
        if Path(path).suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, ndmin=1)
    except ValueError as problem:
        raise DataError(f"{path} cannot be read ({problem}): give a number per sample") from None
