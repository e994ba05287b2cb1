"""The ranks of an MPI job, and how they stay of one mind."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import numpy as np

from edgewise.engines.placement import Placement, partition
from edgewise.errors import DataError, EdgewiseError, InputError
from edgewise.graph.graph import Graph

T = TypeVar("T")

SPIN = 1e-4  # seconds to ask without a break
NAP = 5e-5  # between two questions after that, so that waiting ranks leave the cores alone
PATIENCE = 5.0  # seconds in which all ranks run into an error that is everybody's
TEXT = 1500  # bytes of a message that ranks tell each other


class MPI:
    """The ranks of an MPI job as the engine of a run: `solve(..., engine=MPI())`, by every rank.

    comm       an mpi4py communicator; default: all ranks of the job
    partition  which rank has which nodes: "metis" (few edges cross, samples are balanced),
               "contiguous" (equal stretches), or one rank per node
    """

    def __init__(self, comm: Any = None, partition: Any = "metis") -> None:
        self.mpi = require_mpi()
        given = self.mpi.COMM_WORLD if comm is None else comm
        self.comm, self.alarm = given.Dup(), given.Dup()
        self.rank, self.ranks = int(self.comm.rank), int(self.comm.size)
        self.partition = partition
        self.known: Any = None  # problem, graph, and what `place` made of them
        # A program runs in the thread that calls it: handing it over costs more than many a round.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        self.take_cores()

    def take_cores(self) -> None:
        """A share of the host's cores for each of its ranks, unless the launcher saw to that: else
        the threads of all ranks run after the same cores."""
        if not hasattr(os, "sched_getaffinity"):  # not on macOS
            return
        here = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        cores, mine, ranks = sorted(os.sched_getaffinity(0)), here.rank, here.size
        here.Free()
        if ranks > 1 and len(cores) == os.cpu_count():
            first, end = mine * len(cores) // ranks, (mine + 1) * len(cores) // ranks
            os.sched_setaffinity(0, cores[first : max(end, first + 1)])

    def __repr__(self) -> str:
        return f"MPI(rank {self.rank} of {self.ranks})"

    def place(self, problem: Any, graph: Graph) -> tuple[Placement, Any]:
        """Who has which nodes, and the problem of this rank's; kept, as it may have been read."""
        if self.known is None or self.known[0] is not problem or self.known[1] is not graph:
            home = partition(self.partition, graph, problem.counts, self.ranks)
            self.finish([self.comm.Ibcast(home, 0)])  # as rank 0 worked it out
            placement = Placement(graph, home)
            own = placement.nodes[self.rank]
            self.known = (problem, graph, placement, self.agreed(lambda: problem.only(own)))
        return self.known[2:]

    # --- of one mind -----------------------------------------------------------------------------

    def total(self, sums: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The sums of all ranks, added up."""
        mine = {k: np.array(a, np.float64) for k, a in sums.items()}
        flat = np.concatenate([a.ravel() for a in mine.values()])
        self.finish([self.comm.Iallreduce(self.mpi.IN_PLACE, flat)])
        ends = np.cumsum([a.size for a in mine.values()])
        parts = np.split(flat, ends[:-1])
        return {k: p.reshape(a.shape) for (k, a), p in zip(mine.items(), parts, strict=True)}

    def largest(self, number: float) -> float:
        out = np.array([number])
        self.finish([self.comm.Iallreduce(self.mpi.IN_PLACE, out, op=self.mpi.MAX)])
        return float(out[0])

    def gather(self, nodes: list[np.ndarray], own: np.ndarray) -> np.ndarray:
        """(v, ...) numbers of a rank's nodes -> (V, ...) of all, at every rank; `nodes` has those
        of each rank."""
        sizes = [len(ids) for ids in nodes]
        own = np.ascontiguousarray(own)
        out = np.empty((sum(sizes), *own.shape[1:]), own.dtype)
        width = own.size // max(len(own), 1)
        counts = [width * size for size in sizes]
        self.finish([self.comm.Iallgatherv(own, [out, counts])])
        whole = np.empty_like(out)
        whole[np.concatenate(nodes)] = out
        return whole

    def gather_at_root(self, nodes: list[np.ndarray], own: np.ndarray) -> np.ndarray:
        """As `gather`, but rank 0 alone gets it: the others keep their own."""
        own = np.ascontiguousarray(own)
        if self.rank:
            self.finish([self.comm.Isend(own, 0)])
            return own
        whole = np.empty((sum(map(len, nodes)), *own.shape[1:]), own.dtype)
        whole[nodes[0]] = own
        for rank, ids in enumerate(nodes[1:], 1):
            part = np.empty((len(ids), *own.shape[1:]), own.dtype)
            self.finish([self.comm.Irecv(part, rank)])
            whole[ids] = part
        return whole

    def agreed(self, do: Callable[[], T]) -> T:
        """What `do` comes to. If it fails at any rank, all ranks raise, and say where and why."""
        made: list[T] = []
        said = ""
        try:
            made.append(do())
        except (EdgewiseError, OSError) as error:
            said = str(error)
        text = as_bytes(said)
        every = np.empty((self.ranks, TEXT), np.uint8)
        self.finish([self.comm.Iallgather(text, every)])
        failed = np.flatnonzero(every.any(1))
        if len(failed):
            first = as_text(every[failed[0]])
            more = f" (and {len(failed) - 1} more ranks failed)" if len(failed) > 1 else ""
            raise DataError(f"rank {failed[0]}: {first}{more}")
        return made[0]

    def tell(self, text: str) -> str:
        """What rank 0 says."""
        said = as_bytes(text)
        self.finish([self.comm.Ibcast(said, 0)])
        return as_text(said)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Either all ranks leave by an exception, or none does: an error of one rank alone ends the
        job, as the others would wait for it for ever."""
        try:
            yield
        except BaseException as error:
            if self.ranks > 1 and not self.everybody():
                ours = isinstance(error, EdgewiseError | OSError | KeyboardInterrupt)
                if not ours:
                    traceback.print_exc()
                what = str(error) if ours else f"{type(error).__name__}: {error}"
                print(f"rank {self.rank} failed, all stop: {what}", file=sys.stderr, flush=True)
                self.comm.Abort(1)
            raise

    def everybody(self) -> bool:
        """Whether all ranks come here within a while."""
        here, began = self.alarm.Ibarrier(), time.monotonic()
        while not here.Test():
            if time.monotonic() - began > PATIENCE:
                return False
            time.sleep(NAP)
        return True

    def finish(self, requests: Sequence[Any]) -> None:
        """Wait without burning a core that another rank may need."""
        done, began = self.mpi.Request.Testall, time.perf_counter()
        while not done(requests):
            if time.perf_counter() - began < SPIN:
                os.sched_yield()
            else:
                time.sleep(NAP)


def as_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode()[:TEXT].ljust(TEXT, b"\0"), np.uint8).copy()


def as_text(said: np.ndarray) -> str:
    return said.tobytes().rstrip(b"\0").decode(errors="replace")


def require_mpi() -> Any:
    try:
        from mpi4py import MPI as mpi
    except ImportError as missing:
        raise InputError(
            f"engine MPI needs mpi4py and an MPI library ({missing}): pip install 'edgewise[mpi]'"
        ) from None
    return mpi
