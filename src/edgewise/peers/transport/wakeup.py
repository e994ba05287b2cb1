"""What wakes a peer that waits."""

import asyncio
from collections.abc import Callable


class Wakeup(asyncio.Event):
    """Set when something has changed; by frames, of which there are many, only when that is what
    somebody waits for."""

    awaited: Callable[[], bool] | None = None

    def frame_came(self) -> None:
        try:
            due = self.awaited is None or self.awaited()
        except Exception:
            due = True  # who waits meets it too: the neighbour whose frame this is did no wrong
        if due:
            self.set()
