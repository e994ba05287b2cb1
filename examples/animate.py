"""How twenty-five peers on a grid come to agree, and agree again after one has lost everything.

Each starts from a random model and knows four neighbours at most. Half way through, the peer in the
middle crashes and forgets its model, its gradients and what it has heard. The colour of a peer is
its distance from the mean of all models.

    python examples/animate.py --plot animate.gif
"""

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.preprocessing import normalize, scale

import edgewise as ew

SIDE, ROUNDS, CRASH = 5, 3000, 1500


def main(arguments: Sequence[str] | None = None) -> ew.Result:
    parser = argparse.ArgumentParser(description="Twenty-five peers on a grid come to agree.")
    parser.add_argument("--plot", metavar="FILE", help="write the film, as .gif or .html")
    plot = parser.parse_args(arguments).plot

    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=SIDE**2, how="label", seed=0)
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=1e-2))
    start = np.random.default_rng(0).standard_normal((problem.nodes, problem.size))
    result = ew.solve(
        problem,
        ew.Graph.grid(SIDE, SIDE),
        "saga-pd",
        rounds=ROUNDS,
        record_every=100,
        X0=start,
        faults=ew.Faults(wipe=(SIDE**2 // 2, CRASH)),
    )

    rounds, apart = result.trace["rounds"], result.apart.max(1)
    for when, at in (("at first", 0), ("before the crash", CRASH), ("at last", ROUNDS)):
        print(f"{when}: the farthest peer is {apart[rounds == at].item():.0e} from the mean")
    print(f"after the crash: {apart[rounds > CRASH].max():.0e}")
    if plot:
        result.animate(plot, frames=31)
        print(f"film: {plot}")
    return result


if __name__ == "__main__":
    main()
