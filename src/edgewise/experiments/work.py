"""Work that can be interrupted, goes on where it was, and shows how long it will take."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from edgewise.experiments.experiment import Job
from edgewise.running.trace import Trace

Task = TypeVar("Task")
Done = TypeVar("Done")


def spread(
    tasks: Sequence[Task], do: Callable[[Task, threading.Event], Done], job: Job, title: str
) -> Iterator[tuple[Task, Done]]:
    """Each task with what it made, as they get done, several at a time in threads: data are there
    once, and compiled programs run without Python's lock."""
    stop = threading.Event()
    console = Console(stderr=True)
    wanted = console.is_terminal if job.progress is None else job.progress
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, console=console, transient=True, disable=not wanted) as bar,
        ThreadPoolExecutor(job.jobs) as threads,
    ):
        shown = bar.add_task(title, total=len(tasks))
        under_way = {threads.submit(do, task, stop): task for task in tasks}
        try:
            for future in as_completed(under_way):
                yield under_way[future], future.result()
                bar.advance(shown)
        except BaseException:
            stop.set()
            threads.shutdown(wait=True, cancel_futures=True)
            raise


def load(path: Path, key: str) -> Trace | None:
    """The trace, if it is there and was made from the same."""
    if not path.exists():
        return None
    trace = Trace.load(path)
    return trace if trace.meta.get("key") == key else None


def kept(
    tasks: Iterable[Task],
    path: Callable[[Task], Path],
    key: Callable[[Task], str],
    bench: Callable[[list[Task]], Callable[[Task, threading.Event], Trace]],
    job: Job,
    title: str,
) -> dict[Task, Trace]:
    """Every task's trace, from its file where an earlier call left it there; `bench` is told which
    are missing, if any, and says how one is made."""
    found = {task: load(path(task), key(task)) for task in tasks}
    missing = [task for task, trace in found.items() if trace is None]
    if missing:
        for task, trace in spread(missing, bench(missing), job, title):
            trace.meta["key"] = key(task)
            trace.save(path(task))
            found[task] = trace
    return {task: trace for task, trace in found.items() if trace is not None}
