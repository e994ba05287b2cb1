"""MPI jobs for tests: quick to compile, off the real network interfaces, and over in time."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from end_with_parent import ending_with_us

# Nothing here runs long enough to be worth optimising: compiling is nearly all the time there is.
FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
SETTINGS = {
    "XLA_FLAGS": FLAGS,
    "JAX_PLATFORMS": "cpu",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
ONE_HOST = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
ONE_HOST += ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]
WITH_LOOPBACK = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@dataclass
class Job:
    status: int
    out: str
    err: str
    ended: float  # by the clock on the wall


def mpiexec():
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def missing():
    """Why no job can be started here; empty if one can."""
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed: pip install 'edgewise[mpi]'"
    return "" if mpiexec() else "there is no mpiexec: pip install 'edgewise[mpi]'"


@cache
def apart():
    """What a launcher is started under, so that it listens on no real interface."""
    for unshare in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and shutil.which("ip"):
            tried = subprocess.run([*unshare, *WITH_LOOPBACK, "true"], capture_output=True)
            if tried.returncode == 0:
                return [*unshare, *WITH_LOOPBACK]
    return []


def launch(ranks, script, *args, timeout=300):
    """A script beside this file, at so many ranks; 0: without MPI."""
    command = ending_with_us(sys.executable, Path(__file__).with_name(script), *args)
    if ranks:  # each rank ends with the launcher, and the launcher with us
        launcher = [*apart(), mpiexec(), "-n", ranks, *ONE_HOST]
        command = ending_with_us(*launcher, *command)
    job = subprocess.Popen(
        command,
        env=os.environ | SETTINGS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = job.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_session(job.pid)
        out, err = job.communicate()
        raise AssertionError(f"{script} hung for {timeout} s:\n{out}\n{err[-3000:]}") from None
    finally:
        end_session(job.pid)
    return Job(job.returncode, out, err, time.time())


def succeed(ranks, script, *args, timeout=600):
    job = launch(ranks, script, *args, timeout=timeout)
    assert job.status == 0, job.err[-5000:]
    return job


def end_session(session):
    """Kill what the job has left: ranks have process groups of their own, but its session."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, IndexError):  # it ended meanwhile
            continue
