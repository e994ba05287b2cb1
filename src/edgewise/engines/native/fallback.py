"""What is said where compiled rounds cannot be had."""

import logging

log = logging.getLogger(__name__)


def plain_rounds_run(error: Exception) -> None:
    """An old Numba, or one for another NumPy, or no folder that it could keep its work in."""
    log.warning("no compiled rounds, the plain ones run: %s: %s", type(error).__name__, error)
