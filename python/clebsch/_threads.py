"""Threads of the library's pool. Workspaces of bound calls depend on their number."""

from __future__ import annotations

import operator

from ._library import ClebschError, call

_times_set = 0


def set_num_threads(threads: int) -> None:
    """Threads of the library's pool, the caller included (0: one per core)."""
    global _times_set
    try:
        number = operator.index(threads)
    except TypeError:
        raise ClebschError(f"threads: expected an integer, got {threads!r}") from None
    if not 0 <= number <= 1024:
        raise ClebschError(f"threads: expected 0 (one per core) to 1024, got {number}")
    call("clebsch_set_num_threads", number)
    _times_set += 1


def times_set() -> int:
    """How often the number was set so far."""
    return _times_set
