"""Data sets by name: those that come with scikit-learn, and LIBSVM's, fetched once and kept."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple

from edgewise.backend.cache import folder as cache_folder
from edgewise.data.arrays import Array, Matrix
from edgewise.data.readers import read_libsvm
from edgewise.errors import DownloadError, UnknownName
from edgewise.fileio import replacing

log = logging.getLogger(__name__)

LIBSVM_SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
SILENCE_S = 30  # of the server, before a download is given up
# ValueError: an address that urllib cannot make sense of
NO_ANSWER = (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError, ValueError)
BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")


class _Remote(NamedTuple):
    features: int  # as the LIBSVM site lists them: the largest index present may be smaller
    files: tuple[str, ...]  # under the site; where it has renamed one, the newer name first
    sha256: str | None = None  # of the file, where independent copies agree on it


LIBSVM = {
    "a9a": _Remote(
        123,
        ("binary/a9a",),
        "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    ),
    "a9a.t": _Remote(
        123,
        ("binary/a9a.t",),
        "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    ),
    "covtype": _Remote(54, ("binary/covtype.libsvm.binary.bz2",)),
    "covtype.scale": _Remote(54, ("binary/covtype.libsvm.binary.scale.bz2",)),
    "epsilon": _Remote(2000, ("binary/epsilon_normalized.xz", "binary/epsilon_normalized.bz2")),
    "epsilon.t": _Remote(
        2000, ("binary/epsilon_normalized.t.xz", "binary/epsilon_normalized.t.bz2")
    ),
    "gisette": _Remote(5000, ("binary/gisette_scale.bz2",)),
    "gisette.t": _Remote(5000, ("binary/gisette_scale.t.bz2",)),
    "ijcnn1": _Remote(22, ("binary/ijcnn1.bz2",)),
    "ijcnn1.t": _Remote(22, ("binary/ijcnn1.t.bz2",)),
    "mushrooms": _Remote(
        112,
        ("binary/mushrooms",),
        "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
    ),
    "news20": _Remote(1_355_191, ("binary/news20.binary.bz2",)),
    "phishing": _Remote(68, ("binary/phishing",)),
    "rcv1_test": _Remote(47_236, ("binary/rcv1_test.binary.bz2",)),
    "rcv1_train": _Remote(47_236, ("binary/rcv1_train.binary.bz2",)),
    "real-sim": _Remote(20_958, ("binary/real-sim.bz2",)),
    "w8a": _Remote(300, ("binary/w8a",)),
    "w8a.t": _Remote(300, ("binary/w8a.t",)),
}


def names() -> list[str]:
    """Every name that `dataset` knows."""
    return sorted([*BUNDLED, *LIBSVM])


def dataset(
    name: str, cache: str | os.PathLike[str] | None = None, mirror: str | None = None
) -> tuple[Matrix, Array]:
    """X and y of a named data set.

    breast_cancer, diabetes, digits, iris and wine are scikit-learn's, as it gives them, and need
    no network. The others come from the LIBSVM site, or from `mirror` (else $EDGEWISE_MIRROR) laid
    out like it, and are kept under `cache` (else $EDGEWISE_CACHE, else ~/.cache/edgewise).

    The SHA-256 of a9a, a9a.t and mushrooms is known beforehand. That of the others is not: the
    first use writes it beside the file, and says so in the log; every later use checks it.
    """
    if name in BUNDLED:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return X, y
    if name not in LIBSVM:
        raise UnknownName("data set", name, names())
    remote = LIBSVM[name]
    folder = Path(cache or cache_folder())
    site = mirror or os.environ.get("EDGEWISE_MIRROR") or LIBSVM_SITE
    kept = [folder / Path(file).name for file in remote.files]
    try:
        path = next((path for path in kept if path.exists()), None)
        if path is None:
            path = _download(name, remote, folder, site.rstrip("/"))
        else:
            _verify(path, path, remote)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"{name} cannot be kept in {folder} ({error}): give another folder as `cache`, or in "
            "EDGEWISE_CACHE"
        ) from error
    return read_libsvm(path, features=remote.features)


def _download(name: str, remote: _Remote, folder: Path, site: str) -> Path:
    """Fetch the first of the remote's files that the site has; only a whole one gets its name."""
    folder.mkdir(parents=True, exist_ok=True)
    failures = []
    for file in remote.files:
        path = folder / Path(file).name
        try:
            with replacing(path, alone=False) as partial:
                _fetch(f"{site}/{file}", partial)
                _verify(Path(partial.name), path, remote)
            return path
        except NO_ANSWER as error:
            failures.append(f"{site}/{file}: {error}")
    by_hand = " or ".join(Path(file).name for file in remote.files)
    raise DownloadError(
        f"{name} could not be downloaded ({'; '.join(failures)}). Check the network or set "
        f"EDGEWISE_MIRROR to another address, or put {by_hand} into {folder} by hand"
    )


def _fetch(address: str, target: IO[bytes]) -> None:
    with urllib.request.urlopen(address, timeout=SILENCE_S) as response:
        shutil.copyfileobj(response, target, 1 << 20)
        promised = response.headers.get("Content-Length")
    target.flush()
    size = target.tell()
    if promised is not None and size != int(promised):
        # urllib takes a connection that closes early for the end of the file
        raise ConnectionError(f"ended after {size} of {promised} bytes")


def _verify(written: Path, path: Path, remote: _Remote) -> None:
    """Check the file that is, or is about to be, at path; note its digest if none is known."""
    with written.open("rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    note = path.with_name(path.name + ".sha256")
    expected = remote.sha256
    if expected is None and note.exists():
        expected = note.read_text().split()[0]
    if expected is None:
        note.write_text(f"{got}  {path.name}\n")  # as `sha256sum --check` reads it
        log.warning(
            "no SHA-256 of %s is known beforehand: taken on trust, and noted in %s for later uses",
            path.name,
            note,
        )
    elif got != expected:
        raise DownloadError(
            f"{path} has SHA-256 {got} where {expected} is expected: it is damaged or was "
            f"changed. Delete {path} and {note.name} if they are there, and try again"
        )
