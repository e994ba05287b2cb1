"""Numbers of a TOML file: written there, or in a file beside it."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from edgewise.errors import InputError

SPARSE = {"format", "shape", "data"}  # what `scipy.sparse.save_npz` writes, among other things


def array_in(value: Any, folder: Path, key: str, at: str) -> Any:
    """A number, a vector or a matrix; a text names an .npy, or an .npz with an array of the key's
    name, or one as `scipy.sparse.save_npz` writes it."""
    if not isinstance(value, str):
        return value
    path = folder / value
    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            if set(found.files) >= SPARSE:
                return sp.csr_array(sp.load_npz(path))
            if key in found.files:
                return found[key]
            names = ", ".join(found.files) or "nothing"
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise InputError(f"{at}: {path} cannot be read ({problem}): give an .npz or .npy") from None
    raise InputError(f"{at}: {path} has no array {key}, but {names}: save it under that name")
