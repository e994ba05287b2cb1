"""How much of a peer's time a neighbour may take by sending.

A frame or two for each of the own rounds is what peers send each other; more come where this peer
is the slower one, or where somebody floods it. Reading these may take a part of the time and no
more: what is beyond that waits with the system, and makes the sender wait. Honest peers do not come
near it: a frame takes some tens of microseconds, so that a fifth of the time is a thousand frames a
second and more.
"""

import asyncio
import time

FREE = 4  # frames since the own last round, of which heartbeats are some
PART = 0.2  # of the time, for what is beyond that
WHOLE_COST = 3.0  # times what the frame takes once it is there, with TLS and the loop around it
SHORTEST = 0.002  # seconds of a pause: many short ones would be work too
LONGEST = 0.5  # seconds; one frame of many megabytes is no reason for more


class ReadingPace:
    """Of one stream."""

    def __init__(self) -> None:
        self.round, self.frames, self.owed = -1, 0, 0.0

    async def spent(self, begun: float, round: int) -> None:
        """What was begun then, by time.perf_counter, was a frame, and is done, in this of the own
        rounds. Waits, if there was more to read than a neighbour may give."""
        if round != self.round:
            self.round, self.frames = round, 0
        self.frames += 1
        if self.frames <= FREE:
            return
        self.owed += (time.perf_counter() - begun) * WHOLE_COST / PART
        if self.owed >= SHORTEST:
            pause, self.owed = min(self.owed, LONGEST), 0.0
            await asyncio.sleep(pause)
