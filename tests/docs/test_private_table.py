"""The tables of docs/privacy.md are what the kept numbers make of them; and they are of use."""

import json
import sys

import pytest
from paths import ROOT

PAGE, KEPT = ROOT / "docs" / "privacy.md", ROOT / "docs" / "data" / "private.json"


@pytest.mark.parametrize("name", ["models", "distances"])
def test_tables_are_of_the_kept_numbers(name, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import private_page

    made = getattr(private_page, name)(json.loads(KEPT.read_text())[name])
    assert made in PAGE.read_text(), "python benchmarks/private.py --page"
