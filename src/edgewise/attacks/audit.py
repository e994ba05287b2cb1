"""A run, replayed against those who might be curious: who gets what."""

from typing import Any, NamedTuple

import jax
import numpy as np

from edgewise.attacks.all_attacks import Attacks
from edgewise.attacks.curvature_news import tells_hessians
from edgewise.attacks.findings import Audit, Line
from edgewise.attacks.recording import Recording
from edgewise.differential_privacy.budget import DP
from edgewise.errors import MethodError, ProblemError, whole_number
from edgewise.gradients import SAGA
from edgewise.graph.graph import Graph
from edgewise.methods.auto import choose
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem
from edgewise.running.checks import check, graph_for
from edgewise.running.private_run import private_run, require_private

ROUNDS = 300


def audit(
    problem: Problem,
    graph: Graph | str,
    method: Method | str = "auto",
    rounds: int = ROUNDS,
    seed: int = 0,
    eta: Any = None,
    rho: Any = None,
    *,
    coalition: Any = None,
    privacy: DP | None = None,
    dual_noise: float = 0.0,
    bits: int | None = None,
    secret_draws: bool = False,
    members: bool = True,
    patient: bool = False,
) -> Audit:
    """What the neighbours of each node, coalitions and others would learn of its data from a run.

    The run is made here, message by message as peers send them, and attacks are given the messages.
    Data serve to say how much of them an attack got.

    problem, graph, method, seed, eta, rho   as of `solve`
    rounds        of which messages are looked at, from the first on; the first tell most
    coalition     the numbers of nodes that put what they see together; default every fourth
    privacy       as of `solve`: what is left to get where gradients have noise
    dual_noise    as of peers: random first duals of this size
    bits          as of peers: messages rounded to so many bits a number
    secret_draws  whether nobody knows which samples a node draws, as of tolerant peers; strict ones
                  draw by the fit's seed, which all of them have
    members       also ask of half of each node's samples whether they were in a run of the others:
                  it takes another run, on half of the data
    patient       also fit rows through the steps of local training, where draws are known: a minute
                  or more for each node

    >>> X, y = edgewise.data.dataset("wine")
    >>> shards = edgewise.split((X - X.mean(0)) / X.std(0), y == 1, nodes=6)
    >>> problem = edgewise.Problem(shards, edgewise.Logistic(ridge=0.1))
    >>> found = audit(problem, "ring", "saga-pd", rounds=150, members=False)
    >>> found["all neighbours", "rows", "recovered"].got > 0.9
    True
    """
    network: Any = graph_for(problem, graph)
    check(problem, network, method, None)
    whole_number("rounds", rounds, 2, MethodError)
    if not isinstance(network, Graph) or network.one_way:
        raise MethodError("an audit is of links that go both ways and stay: give a Graph")
    if problem.stream is not None or problem.cost is not None or not problem.loss.linear:
        raise ProblemError(
            "an audit is of losses of margins, of samples that nodes hold: leave streams, costs "
            "and custom losses out"
        )
    joined = chosen_members(coalition, network.nodes)
    with jax.enable_x64(True):
        given = network, method, rounds, seed, eta, rho
        run = settled(problem, *given, privacy)
        recording = Recording(*run.of(network), dual_noise, bits)
        recording.require_readable()
        made = Attacks(recording, joined, secret_draws, patient)
        made.run()
        if members:
            made.ask_of_members(
                lambda half: Recording(
                    *settled(half, *given, privacy).of(network), dual_noise, bits
                )
            )
        line = on_the_line(recording)
    about = assumptions(recording, joined, secret_draws)
    made.not_tried.extend(limits(recording, patient and not secret_draws))
    return Audit(run.name, recording.rounds, made.found, made.by_node, line, about, made.not_tried)


class Settled(NamedTuple):
    """A run as it is made."""

    problem: Problem
    method: Method
    name: str
    rounds: int
    seed: int

    def of(self, graph: Graph) -> tuple[Problem, Graph, Method, int, int]:
        return self.problem, graph, self.method, self.rounds, self.seed


def settled(
    problem: Problem,
    graph: Graph,
    method: Method | str,
    rounds: int,
    seed: int,
    eta: Any,
    rho: Any,
    privacy: DP | None,
) -> Settled:
    """With noise in its gradients, and rows cut short, where it is private. All of its rounds are
    accounted for, however many are looked at."""
    if privacy is None:
        return Settled(problem, *choose(method, problem, graph, eta, rho)[:2], rounds, seed)
    require_private(privacy, problem)
    run = private_run(privacy, problem, graph, method, privacy.rounds, eta, rho, True)
    return Settled(run.problem, run.method, run.name, min(rounds, run.rounds), run.seed)


def chosen_members(given: Any, nodes: int) -> np.ndarray:
    """(V,) who is in the coalition."""
    who = np.arange(0, nodes, 4) if given is None else np.asarray(given)
    if who.ndim != 1 or not len(who) or who.dtype.kind not in "iu" or who.min() < 0:
        raise MethodError(f"coalition={given!r}: give the numbers of nodes, as [0, 3]")
    if who.max() >= nodes:
        raise MethodError(f"coalition={given!r}: nodes are 0 to {nodes - 1}")
    return np.isin(np.arange(nodes), who)


def on_the_line(r: Recording) -> Line:
    """TLS tells sizes. Vectors are of one size, whatever is in them; a matrix makes a message
    longer in rounds that the method's schedule and damping say."""
    if "news" not in r.method.hears:
        return Line(r.bytes, 1, 0, r.rounds)
    news = r.sent[r.method.hears.index("news")]
    return Line(r.bytes, 2, int((news[..., 0] > 0).sum()), r.rounds)


def limits(r: Recording, fitted: bool) -> list[str]:
    """What an attacker with more patience might try: attacks here stop short of it."""
    out = ["rows by what is known of them from elsewhere: likely values, whole numbers, categories"]
    if getattr(r.method, "times", 1) > 1:
        if not fitted:
            out.append("rows by a fit through the steps of local training (patient, known draws)")
    elif r.method.samples is None:
        out.append("rows by a fit to whole gradients of many rounds")
    elif not isinstance(r.method.gradient, SAGA):
        out.append("rows by a fit to batches of other estimators than SAGA")
    return out


def assumptions(r: Recording, members: np.ndarray, secret: bool) -> list[str]:
    out = [
        "all know the method, the loss, ridge and penalty, the graph, and the steps and weights "
        "that greetings lead to",
        "attackers have their own samples, and what came to them and went from them",
        f"the coalition is {', '.join(map(str, np.flatnonzero(members)))}",
    ]
    if r.method.samples is not None:
        out.append(
            "nobody knows which samples a node draws"
            if secret
            else "all know which samples, by number, a node draws, as of strict peers"
        )
    if tells_hessians(r):
        out.append("who is told a Hessian takes its factor to be what its own was")
    return out
