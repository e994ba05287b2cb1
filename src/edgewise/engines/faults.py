"""What may go wrong in a network, and when."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgewise.engines.liars import Liars
from edgewise.errors import FaultWarning, GraphError, MethodError, whole_number
from edgewise.graph.graph import Graph
from edgewise.graph.varying import TimeVarying
from edgewise.methods.contract import Method


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults of the simulated network, all seeded, in any combination.

    drop      part of the messages that get lost
    burst     mean rounds that an edge, one way, loses all messages in a row; None: each message is
              lost by itself
    delay     a message takes from 0 to so many rounds more, each as likely; one that was overtaken
              is thrown away
    awake     part of the rounds that a node is awake, one number or one per node; asleep it neither
              steps nor sends, though messages to it are kept
    nap       mean rounds that a node sleeps in a row; None: each round by itself
    down      (i, j, first, last): the link carries nothing from round first to last, both included
    wipe      (node, round): it forgets everything, gradient memory and messages too, and begins
              again
    leave     (node, round): it is gone from that round on, and the optimum is of those present
    join      (node, round): it comes, from nothing, in that round; absent before, unless it left
    bits      messages are rounded to so many bits a number, as peers do with `bits`
    keep      only this part of a message's numbers is sent, the largest
    feedback  with bits or keep: what is sent is the change of what the receiver holds, so that
              what one message leaves out comes with later ones
    seed      of all this; that of the method's samples is `solve`'s
    patience  rounds that a node, awake, waits for something new from its neighbours before it steps
              with what it has, as tolerant peers do. One that was waited for in vain is not waited
              for again until it has spoken, unless that holds of all. 0: nobody waits
    liars     a `Liars`: nodes that send other numbers than they have. No method is exact then; one
              with a `radius`, as `PrimalDual(SAGA(), radius="auto")`, is moved by no more than that
    links     a `TimeVarying`: the links of each round. `solve` sets it where that is the graph

    Rounds count from 0, so an event "in round r" is when r rounds are over.

    >>> storm = Faults(drop=0.2, awake=0.5, wipe=[(4, 1000), (2, 1500)], leave=(7, 2000))
    """

    drop: float = 0.0
    burst: float | None = None
    delay: int = 0
    awake: Any = 1.0
    nap: float | None = None
    down: Any = ()
    wipe: Any = ()
    leave: Any = ()
    join: Any = ()
    bits: int | None = None
    keep: float | None = None
    feedback: bool = True
    seed: int = 0
    patience: int = 0
    liars: Liars | None = None
    links: TimeVarying | None = None

    def __post_init__(self) -> None:
        fraction("drop", self.drop, 0, below=1)
        for part in np.ravel(np.asarray(self.awake, object)):
            fraction("awake", part, 0, above=True)
        object.__setattr__(self, "awake", np.asarray(self.awake, np.float64))
        for name in ("burst", "nap"):
            length = getattr(self, name)
            if length is not None and not (is_number(length) and 1 <= length < np.inf):
                raise MethodError(f"{name}={length!r}: give a mean number of rounds from 1 up")
        for name, bad in (("burst", self.drop), ("nap", 1 - self.awake.min(initial=1))):
            length = getattr(self, name)
            if length is not None and bad / (1 - bad) > length:
                raise MethodError(f"{name}={length!r} is too short for a part of {bad:.3g}")
        whole_number("delay", self.delay, 0, MethodError)
        whole_number("the faults' seed", self.seed, 0, MethodError)
        whole_number("patience", self.patience, 0, MethodError)
        if self.bits is not None and not 2 <= whole_number("bits", self.bits, 2, MethodError) <= 32:
            raise MethodError(f"bits={self.bits!r}: give 2 to 32")
        if self.keep is not None:
            fraction("keep", self.keep, 0, above=True)
        if self.liars is not None and not isinstance(self.liars, Liars):
            raise MethodError(f"liars={self.liars!r}: give edgewise.Liars(0.1, 'flip')")
        for name, size in (("down", 4), ("wipe", 2), ("leave", 2), ("join", 2)):
            object.__setattr__(self, name, events(name, getattr(self, name), size))
        for i, j, first, last in self.down:
            if first > last:
                raise MethodError(f"down: ({i}, {j}, {first}, {last}) ends before it begins")
        if self.compresses and self.feedback and self.forgets:
            raise MethodError(
                "changes can only be sent where none gets lost: with drop, delay, down, wipe, "
                "leave, join or a time-varying graph set feedback=False, or leave bits and keep out"
            )

    @property
    def compresses(self) -> bool:
        return self.bits is not None or self.keep is not None

    @property
    def forgets(self) -> bool:
        """Whether a receiver may hold something else than the sender thinks."""
        lost = self.drop or self.delay or self.down or self.wipe or self.leave or self.join
        return bool(lost) or self.links is not None

    @property
    def harms(self) -> bool:
        """Whether a method that does not heal would end elsewhere."""
        return self.forgets or bool((self.awake < 1).any()) or self.keep is not None

    @property
    def random(self) -> bool:
        """Whether another seed makes other faults."""
        return self.drop > 0 or self.delay > 0 or bool((self.awake < 1).any())

    def fit(self, graph: Graph, whole: bool = True) -> None:
        """Refuse what the graph does not have, or, where it must stay whole, what would take it
        apart."""
        V = graph.nodes
        if graph.one_way:
            raise GraphError(
                "faults on a directed graph: nothing stays exact there, for push methods add up "
                "what they hear; leave faults out, or give a Graph, whose links go both ways"
            )
        if self.awake.shape not in ((), (V,)):
            raise GraphError(f"awake has shape {self.awake.shape}: give one number, or {V}")
        if self.liars is not None:
            self.liars.fit(V)
        for name in ("wipe", "leave", "join"):
            for node, _ in getattr(self, name):
                if not 0 <= node < V:
                    raise GraphError(f"{name}: there is no node {node}, nodes are 0 to {V - 1}")
        if self.links is not None and not np.array_equal(self.links.union.edges, graph.edges):
            raise GraphError("links are of another graph: give the TimeVarying as the graph itself")
        edges = {tuple(e) for e in graph.edges.tolist()}
        for i, j, _, _ in self.down:
            if (min(i, j), max(i, j)) not in edges:
                raise GraphError(f"down: the graph has no edge between {i} and {j}")
        for r in self.changes:
            here = np.flatnonzero(self.present(V, r))
            if len(here) == 0:
                raise GraphError(f"in round {r} no node is left")
            if whole and not induced(graph, here).connected:
                raise GraphError(
                    f"in round {r} the nodes present are not connected: leave another node in, or "
                    "give the graph an edge more"
                )

    @property
    def changes(self) -> list[int]:
        """The rounds in which somebody comes or goes, and the first."""
        return sorted({0, *(r for _, r in (*self.leave, *self.join))})

    @property
    def breaks(self) -> list[int]:
        """The rounds in which anything is other than in the one before."""
        rounds = {r for _, r in (*self.wipe, *self.leave, *self.join)}
        for _, _, first, last in self.down:
            rounds |= {first, last + 1}
        return sorted(rounds)

    @property
    def last_event(self) -> int:
        """The last of these rounds; 0 where there is none."""
        return max(self.breaks, default=0)

    def present(self, nodes: int, round: int) -> np.ndarray:
        """(V,) who takes part in a round."""
        turns: dict[int, list[tuple[int, bool]]] = {}
        for here, events in ((False, self.leave), (True, self.join)):
            for node, at in events:
                turns.setdefault(node, []).append((at, here))
        present = np.ones(nodes, bool)
        for node, own in turns.items():
            own.sort()
            present[node] = not own[0][1]
            for at, here in own:
                if at <= round:
                    present[node] = here
        return present


def links_in_time(graph: Any, faults: Any) -> tuple[Graph, Faults | None]:
    """The graph, and the faults: of a graph that changes its union, and faults with its links."""
    if not isinstance(graph, TimeVarying):
        return graph, faults
    given = Faults() if faults is None else required(faults)
    return graph.union, replace(given, links=graph)


def required(faults: Any) -> Faults:
    if not isinstance(faults, Faults):
        raise MethodError(f"faults={faults!r}: give edgewise.Faults(drop=0.2, ...)")
    return faults


def under_faults(method: Method, faults: Any, problem: Any, graph: Graph) -> Method:
    """As `healing_form`; warns of a method that will not be exact."""
    method = healing_form(method, faults, problem, graph)
    told = harm(method, faults)
    if told:
        warnings.warn(told, FaultWarning, stacklevel=3)
    return method


def healing_form(method: Method, faults: Any, problem: Any, graph: Graph) -> Method:
    """The method as it runs under faults: a primal-dual one in edge form."""
    required(faults)
    if problem.stream is not None:
        raise MethodError("faults are for a finite set of samples, this problem has a stream")
    faults.fit(graph, whole=not problem.couples)  # else one model, and all have to reach it
    return method.healing()


def harm(method: Method, faults: Faults) -> str:
    """Why the method will not be exact under these faults; nothing where it will."""
    if faults.compresses and not faults.feedback:
        return "without feedback compressed messages keep every method away from the optimum"
    if faults.harms and not method.heals:
        alone = not replace(faults, links=None).harms
        where = "on a graph whose links come and go" if alone else "under these faults"
        return (
            f"{type(method).__name__} does not heal: {where} it ends away from the "
            "optimum, or diverges; the primal-dual methods (saga-pd, pdmm, ...) stay exact"
        )
    return ""


def induced(graph: Graph, nodes: np.ndarray) -> Graph:
    """The graph of some of the nodes, renumbered."""
    at = np.full(graph.nodes, -1)
    at[nodes] = np.arange(len(nodes))
    i, j = at[graph.edges].T
    return Graph.from_edges(np.stack([i, j], 1)[(i >= 0) & (j >= 0)], len(nodes))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def fraction(
    name: str, value: Any, least: float, below: float = np.inf, above: bool = False
) -> None:
    right = is_number(value) and least <= value <= 1 and value < below
    if not right or (above and value == least):
        raise MethodError(f"{name}={value!r}: give a part of one")


def events(name: str, given: Any, size: int) -> tuple[tuple[int, ...], ...]:
    """Tuples of whole numbers; one by itself will do."""
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise MethodError(f"{name}={given!r}: give tuples of {size} whole numbers")
    rows = list(given)
    if rows and not isinstance(rows[0], Iterable):
        rows = [rows]
    for row in rows:
        if not isinstance(row, Iterable) or len(list(row)) != size:
            raise MethodError(f"{name}: {row!r} should be {size} whole numbers")
    return tuple(tuple(whole_number(name, v, 0, MethodError) for v in row) for row in rows)
