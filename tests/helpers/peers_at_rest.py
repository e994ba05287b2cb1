"""Peers that have come to rest, and what they hold when they are stopped."""

import signal

import numpy as np

SMALL = 1e-10


def settled(peers, ids, around):
    """Until these have run on for a while with the neighbours that they should have, and rest."""
    came_to = {i: peers.status(i).get("rounds", 0) for i in ids}

    def rests(i):
        now = peers.status(i)
        part = {int(j) for j, link in now.get("neighbours", {}).items() if link["part"]}
        later = now.get("rounds", 0) > came_to[i] + 300
        return part == around[i] and later and now.get("residual", 1) < SMALL

    peers.until(lambda: all(map(rests, ids)), f"peers {ids} at rest")


def stopped_models(peers, ids):
    for i in ids:
        peers.running[i].send_signal(signal.SIGTERM)
    for i in ids:
        assert peers.running[i].wait(60) == 0, peers.said(i)
    return np.stack([np.load(peers.configs[i].out / "model.npz")["x"] for i in ids])
