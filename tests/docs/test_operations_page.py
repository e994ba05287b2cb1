"""The table of failures in docs/operations.md is what benchmarks/outages.py measured."""

import json
import sys

from paths import ROOT

PAGE = ROOT / "docs" / "operations.md"


def test_the_table_is_of_the_kept_numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import outages_page

    kept = json.loads((ROOT / "docs" / "data" / "outages.json").read_text())
    made = outages_page.table(kept)
    assert made in PAGE.read_text(), "python benchmarks/outages.py --page"
    assert set(kept) == set(outages_page.WHAT_TO_DO)
    assert made.count("\n") == 1 + len(kept)
    sys.modules.pop("outages_page")
