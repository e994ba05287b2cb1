"""What wakes a peer that waits."""

import asyncio
from collections.abc import Callable


class Wakeup(asyncio.Event):
    """Set when something has changed; by frames, of which there are many, only when that is what
    somebody waits for."""

    awaited: Callable[[], bool] | None = None

    def frame_came(self) -> None:
        if self.awaited is None or self.awaited():
            self.set()
