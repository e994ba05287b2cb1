"""Turns, by which tolerant peers keep pace.

Every peer has a turn and tells it with its messages. A step waits for each neighbour's turn to be
no less than the own one, for as long as patience lasts, and takes the own one further by one, or
to the furthest that was heard. So neighbours that all are there go through the turns together, one
way for each; nobody is slowed by messages that took others' places; and who was away, was slow or
is new goes on from where the others are. Turns are of peers, not of edges: were they of edges,
streams that begin anew would leave some cycles of peers with fewer messages on the way than peers.
"""

from collections.abc import Iterable

TURNS = 1 << 32  # after which they begin again at 0


def ahead(turn: int, of: int) -> int:
    """How far; less than 0 if it is behind."""
    half = TURNS // 2
    return (turn - of + half) % TURNS - half


def next_turn(own: int, heard: Iterable[int | None]) -> int:
    further = (ahead(turn, own) for turn in heard if turn is not None)
    return (own + max(1, max(further, default=1))) % TURNS
