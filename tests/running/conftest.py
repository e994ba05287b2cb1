"""Early rounds are run by NumPy here, as users' are."""

import pytest


@pytest.fixture(autouse=True)
def _early_rounds_by_numpy(monkeypatch):
    monkeypatch.setenv("EDGEWISE_NUMPY", "1")
