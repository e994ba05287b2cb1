"""Twenty hospitals, one model, no coordinator: what `edgewise solve` does if it is given no data.

scikit-learn's breast-cancer data are dealt out to 20 peers, unevenly: some see mostly benign
cases, some mostly malignant ones, one has a single patient. On a random graph of 50 edges they fit
an l1-penalised logistic regression, sending each other models and never data. Options are those of
`edgewise solve`, such as --method, --seed, --drop 0.2 or --out FOLDER; here is what it amounts to
in Python:

    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(scale(X), y, nodes=20, how="label")
    problem = ew.Problem(
        shards, loss=ew.Logistic(ridge=1e-3), penalty=ew.L1(2e-3), weights="sample", intercept=True
    )
    graph = ew.Graph.random(nodes=20, edges=50)
    ew.solve(problem, graph, tol=1e-7)
"""

import sys

from edgewise.cli.app import app

if __name__ == "__main__":
    app(["solve", *sys.argv[1:]], prog_name="demo.py")
