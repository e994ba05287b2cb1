"""From options to what `solve` takes: samples, a problem, a graph, faults, an engine."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edgewise as ew
from edgewise import spec
from edgewise.cli.option_groups import DataOptions, EngineOptions, FaultOptions, ProblemOptions
from edgewise.cli.shell import launched_process
from edgewise.cli.table_options import table_options
from edgewise.data.arrays import Array, Matrix
from edgewise.data.folders import FolderShards
from edgewise.data.loading import ADVICE, KNOWN, Samples, read_samples
from edgewise.data.row_terms import TermColumns
from edgewise.data.shards import TERMS
from edgewise.data.text import OPENERS
from edgewise.errors import DataError, InputError, UnknownName


class Inputs(NamedTuple):
    problem: ew.Problem
    graph: ew.Graph
    sums: ew.Standardization | None = None  # of --standardize, with what it sent

    @property
    def done(self) -> list[str]:
        """What was done to a table before, in sentences."""
        return what_was_done(self.problem.shards)


def what_was_done(shards: ew.Shards | FolderShards) -> list[str]:
    return [] if shards.preparation is None else list(shards.preparation.done)


def make_inputs(o: ProblemOptions, engine: ew.MPI | None = None) -> Inputs:
    shards, sums = load_shards(o), None
    graph = make_graph(o, shards.nodes)
    sample_weight = read_weights(o.sample_weight)
    require_weight_of_each(sample_weight, shards, o)
    if o.standardize:
        shards, sums = standardized(shards, graph, sample_weight, o, engine)
    problem = ew.Problem(
        shards,
        loss=spec.loss(o.loss, o.ridge),
        penalty=spec.penalty(o.penalty, shards.nodes),
        weights=o.weights,
        sample_weight=sample_weight,
        intercept=o.intercept,
    )
    return Inputs(problem, graph, sums)


def standardized(
    shards: ew.Shards | FolderShards,
    graph: ew.Graph,
    sample_weight: Array | None,
    o: ProblemOptions,
    engine: ew.MPI | None,
) -> tuple[ew.Shards, ew.Standardization]:
    """By sums over the network, with messages lost and nodes asleep as in the run; a sum is over
    all nodes, so none leaves in it."""
    faults = make_faults(o) if isinstance(o, FaultOptions) else None
    if faults is not None:
        faults = replace(faults, wipe=(), leave=(), join=(), down=(), bits=None, keep=None)
    made, sums = ew.standardize(shards, graph, sample_weight, faults=faults, engine=engine)
    if o.normalize:
        from sklearn.preprocessing import normalize

        scaling = replace(sums, unit_rows=True)
        made = replace(made, X=normalize(made.X), scaling=scaling)
    return made, sums


def make_graph(o: ProblemOptions, nodes: int) -> ew.Graph:
    seed = o.seed if o.graph_seed is None else o.graph_seed
    return spec.graph(o.graph, nodes, seed, graph_size(o))


def graph_size(o: Any) -> spec.GraphSize:
    return spec.GraphSize(*(getattr(o, name) for name in spec.GraphSize._fields))


def make_faults(o: FaultOptions) -> ew.Faults | None:
    apart = ("feedback", "fault_seed")
    given = {f.name: getattr(o, f.name) for f in fields(FaultOptions) if f.name not in apart}
    return spec.faults(given, o.feedback, o.fault_seed)


def make_engine(o: EngineOptions) -> ew.MPI | None:
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


def load_shards(o: ProblemOptions) -> ew.Shards | FolderShards:
    folder = o.shards
    if o.data is not None and folder is not None:
        raise DataError(f"both data ({o.data}) and shards ({folder}) are given: leave one out")
    if o.data is not None and Path(o.data).is_dir():
        folder = o.data
    if folder is None:
        return split_samples(o)
    shards = FolderShards(folder)
    if o.nodes not in (None, shards.nodes):
        raise DataError(f"{folder} has {shards.nodes} nodes, not {o.nodes}: leave --nodes out")
    of_files = table_options(o)
    if of_files:
        raise DataError(
            f"{folder} holds shards, which were read from a file before: leave "
            f"{', '.join('--' + name for name in of_files)} out, or split the file again"
        )
    if shards.scaling is not None and (o.scale or o.standardize or o.normalize):
        raise DataError(
            f"{folder} was scaled when it was split: leave --scale, --standardize, --normalize out"
        )
    if o.standardize or not (o.scale or o.normalize):
        return shards
    X, scaling = preprocess(shards.X, o)
    return replace(shards.whole, X=X, scaling=scaling)


def split_samples(o: DataOptions) -> ew.Shards:
    X, y, columns, lines, preparation, terms = load_samples(o)
    scaling = None
    if (o.scale or o.normalize) and not getattr(o, "standardize", False):
        # a bad value would be a bad mean, and everywhere
        ew.Shards(X, y, np.array([len(y)]), columns=columns, lines=lines)
        X, scaling = preprocess(X, o)
    nodes = 10 if o.nodes is None else o.nodes
    seed = o.seed if o.split_seed is None else o.split_seed
    shards = ew.split(X, y, nodes, o.how, seed, o.alpha, columns, lines)
    held = terms.at(slice(None) if shards.order is None else shards.order)
    of_rows = {name: getattr(held, name) for name in TERMS}
    return replace(shards, scaling=scaling, preparation=preparation, **of_rows)


def load_samples(o: DataOptions) -> Samples:
    """A file if there is one, else a named set."""
    if o.data is None:
        raise DataError(f"no data: give a file or a name, one of {', '.join(ew.data.names())}")
    path, given = Path(o.data), table_options(o)
    if path.is_file() or path.suffix.lower() in (*KNOWN, *OPENERS, *ADVICE):
        terms = TermColumns(*(given.pop(name, None) for name in TermColumns._fields))
        return read_samples(path, o.features, dense=o.dense, label=o.label, terms=terms, **given)
    if o.data not in ew.data.names():
        raise UnknownName("file or data set", o.data, ew.data.names())
    if given:
        raise DataError(f"{o.data} is numbers throughout: leave --{next(iter(given))} out")
    return Samples(*ew.data.dataset(o.data))


def preprocess(X: Matrix, o: DataOptions) -> tuple[Matrix, ew.Standardization | None]:
    """X scaled as asked, and how, for the model to remember."""
    from sklearn.preprocessing import StandardScaler, normalize

    if not (o.scale or o.normalize):
        return X, None
    centre, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if o.scale:
        scaler = StandardScaler(with_mean=isinstance(X, np.ndarray))
        X = scaler.fit_transform(X)
        centre, scale = scaler.mean_ if scaler.with_mean else centre, scaler.scale_
    if o.normalize:
        X = normalize(X)
    return X, ew.Standardization(centre, scale, unit_rows=o.normalize)


def require_weight_of_each(
    weights: Array | None, shards: ew.Shards | FolderShards, o: ProblemOptions
) -> None:
    """A file of weights has one for every row of the table, some of which may have been left out:
    which ones, only the table knows."""
    left_out = [done for done in what_was_done(shards) if done.startswith("rows left out")]
    if weights is not None and left_out and len(weights) != shards.samples:
        raise DataError(
            f"{o.sample_weight} has {len(weights)} weights and {shards.samples} rows are left "
            f"({'; '.join(left_out)}): fill cells in (--missing mean), or weigh those that are left"
        )


def read_weights(path: str | None) -> Array | None:
    if path is None:
        return None
    try:
        if Path(path).suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, ndmin=1)
    except ValueError as problem:
        raise DataError(f"{path} cannot be read ({problem}): give a number per sample") from None
