"""News: a row that a node tells all its neighbours alike (`Method.hears`). Its head goes with every
message, the body only where it has changed, and whoever hears it keeps the last one.

Over a wire it is the head alone, with a flag of 0, or head and body, with a flag of 1.
"""

import numpy as np

from edgewise.peers.transport.frames import NEWS, Frame, MessageFormat


def told(frame: Frame, format: MessageFormat, whole: bool) -> Frame:
    """The frame, with a whole row of news, as it goes out: with the body of these or without."""
    if not format.head:
        return frame
    news = np.array(frame.news if whole else frame.news[: format.head], NEWS)
    news[0] = whole
    return frame._replace(news=news)


def merged(older: np.ndarray, newer: np.ndarray) -> np.ndarray:
    """What two messages tell of which the older was not read: the newer head, and the last body.
    That has changed if either says so."""
    if len(newer) >= len(older):
        return newer
    news = older.copy()
    news[1 : len(newer)] = newer[1:]
    return news
