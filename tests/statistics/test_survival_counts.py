"""Kaplan-Meier and log-rank from summed counts, against statsmodels' of all samples together."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

import edgewise as ew
from edgewise.errors import DataError, DisclosureError, UnknownName

SIZES = (40, 23, 31)
ALL = {"least_count": 1}


def drawn(seed=0, groups=3, whole=True, times=1):
    rng = np.random.default_rng(seed)
    node = np.repeat(range(len(SIZES)), times * np.array(SIZES))
    group = rng.integers(groups, size=len(node))
    death = rng.exponential(6 * (1 + 0.4 * group + 0.2 * node))
    end = rng.exponential(12, len(node))
    time, event = np.minimum(death, end), death <= end
    return (np.ceil(time) if whole else time + 1e-3), event, group, node


def by_node(node, *arrays):
    return [[a[node == i] for i in range(len(SIZES))] for a in arrays]


def test_curve_on_all_times():
    time, event, _, node = drawn()
    grid = np.unique(time[event])
    (labels,) = by_node(node, ew.survival_labels(time, event))
    found = ew.kaplan_meier("ring", labels, grid, **ALL)
    pooled = SurvfuncRight(time, event)
    assert_allclose(found.survival, pooled.surv_prob, rtol=1e-12)
    assert_allclose(found.standard_error[:-1], pooled.surv_prob_se[:-1], rtol=1e-12)
    assert (found.at_risk == pooled.n_risk).all()
    assert (found.events == pooled.n_events).all()
    assert found.exact
    assert (found.bounds == found.survival).all()
    assert found.median == pooled.quantile(0.5)
    S = found.survival
    assert_allclose(found.at([0.5, 3, 3.5, 1e9]), [1, S[2], S[2], np.nan])
    # R's survfit(conf.type = "log-log"), by its formula
    S, error = S[:-1], found.standard_error[:-1]
    wide = 1.959963984540054 * error / (S * np.log(S))
    assert_allclose(found.lower[:-1], S ** np.exp(-wide), rtol=1e-12)
    assert_allclose(found.upper[:-1], S ** np.exp(wide), rtol=1e-12)


def test_coarse_grids_hold_the_curve_between_bounds():
    """And any order of events and censoring between two times is within them, none beyond."""
    time, event, _, node = drawn(3, whole=False)
    (labels,) = by_node(node, ew.survival_labels(time, event))
    pooled = SurvfuncRight(time, event)
    grid = np.linspace(2, 20, 7)
    found = ew.kaplan_meier("path", labels, grid, **ALL)
    here = np.searchsorted(pooled.surv_times, grid, side="right") - 1
    low, high = found.bounds
    assert not found.exact
    assert (low < pooled.surv_prob[here]).all()
    assert (pooled.surv_prob[here] < high).all()
    reached = set()
    for order in set(itertools.permutations([1, 1, 0, 0])):
        y = ew.survival_labels(np.append([1.2, 1.4, 1.6, 1.8], 3.0), np.append(order, 0))
        found = ew.kaplan_meier("path", [y[:2], y[2:]], [2.0], **ALL)
        exact = SurvfuncRight(np.abs(y), y > 0).surv_prob[-1]
        reached.add(round(exact, 9))
        assert found.bounds[0, 0] <= exact + 1e-12
        assert exact <= found.bounds[1, 0] + 1e-12
    assert {round(b, 9) for b in found.bounds[:, 0]} <= reached


@pytest.mark.parametrize("weights", ["log-rank", "wilcoxon", "tarone-ware"])
@pytest.mark.parametrize("stratified", [False, True])
def test_log_rank(weights, stratified):
    time, event, group, node = drawn(1)
    labels, arms = by_node(node, ew.survival_labels(time, event), group)
    grid = None if stratified else np.unique(time[event])
    found = ew.log_rank("ring", labels, arms, range(3), grid, weights, **ALL)
    named = {"log-rank": None, "wilcoxon": "gb", "tarone-ware": "tw"}[weights]
    strata = node if stratified else None
    statistic, p = survdiff(time, event.astype(int), group, named, strata)
    assert found.exact
    assert found.degrees == 2
    assert_allclose([found.statistic, found.p_value], [statistic, p], rtol=1e-9)
    assert_allclose(found.observed.sum(), found.expected.sum(), rtol=1e-10)


def test_groups_have_curves_of_their_own():
    time, event, group, node = drawn(2)
    names = np.array(["a", "b", "c"])[group]
    labels, arms = by_node(node, ew.survival_labels(time, event), names)
    found = ew.kaplan_meier("ring", labels, np.arange(1, 60), arms, list("abcd"), **ALL)
    for k, level in enumerate("abc"):
        pooled = SurvfuncRight(time[group == k], event[group == k])
        assert_allclose(found[level].at(pooled.surv_times), pooled.surv_prob, rtol=1e-12)
    assert (found["d"].survival == 1).all()
    same = ew.log_rank("ring", labels, arms, list("abcd"), np.arange(1, 60), **ALL)
    assert same.degrees == 2
    assert_allclose(same.statistic, survdiff(time, event.astype(int), group)[0], rtol=1e-9)


def test_small_cells_are_refused_before_anything_is_sent(monkeypatch):
    from edgewise.statistics import counts, log_rank, risk_counts

    def never(*_, **__):
        raise AssertionError("sent")

    for module in (counts, risk_counts, log_rank):
        monkeypatch.setattr(module, "sum_over", never)
    days = [np.repeat([2.0, 4.0, -9.0], [6, 5, 7]), np.repeat([2.0, 4.0, -9.0], [6, 4, 7])]
    with pytest.raises(
        DisclosureError, match=r"node 1 has 4 events from 3 to 4, .* 1 to 4: give f"
    ):
        ew.kaplan_meier("path", days, [3, 4])
    with pytest.raises(AssertionError, match="sent"):
        ew.kaplan_meier("path", days, [3, 4], least_count=[5, 4])
    with pytest.raises(DisclosureError, match="node 0 has 5 events from 3 to 4"):
        ew.kaplan_meier("path", days, [3, 4], least_count=[6, 1])
    with pytest.raises(DisclosureError, match="node 0 has 7 samples beyond 4"):
        ew.kaplan_meier("path", days, [4], least_count=8)
    arms = [np.repeat([0, 1], [9, 9]), np.repeat([0, 1], [9, 8])]
    with pytest.raises(DisclosureError, match="node 0 has 2 events of group 1"):
        ew.log_rank("path", days, arms, [0, 1])


def test_grids_that_nodes_make_coarser():
    time, event, _, node = drawn(4, whole=False, times=6)
    (labels,) = by_node(node, ew.survival_labels(time, event))
    fine = np.linspace(1, 30, 30)
    found = ew.kaplan_meier("ring", labels, fine, coarsen=True)
    assert 1 < len(found.times) < 30
    assert set(found.times) < set(fine)
    same = ew.kaplan_meier("ring", labels, found.times)  # which nobody refuses
    assert (same.survival == found.survival).all()
    with pytest.raises(DisclosureError, match="no grid is coarse enough"):
        ew.kaplan_meier("path", [[1.0, 2.0]] * 2, [1, 2], coarsen=True)


def test_sums_of_counts():
    total = ew.sum_counts("ring", [[12, 0], [7, 30], [25, 5]])
    assert total.value.tolist() == [44, 35]
    assert total.at_nodes.tolist() == [[44, 35]] * 3
    with pytest.raises(DisclosureError, match="node 1 has 3 in cell 0"):
        ew.sum_counts("ring", [[12, 0], [3, 30], [25, 5]])
    with pytest.raises(DataError, match="no counts"):
        ew.sum_counts("ring", [[12, 0], [3.5, 30], [25, 5]])
    with pytest.raises(DataError, match="2 least counts for 3 nodes"):
        ew.sum_counts("ring", [12, 13, 15], [5, 5])
    with pytest.raises(DataError, match="least_count is 0"):
        ew.sum_counts("ring", [12, 13, 15], 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": [2, 1]}, "must be positive, and grow"),
        ({"grid": []}, "one at least"),
        ({"groups": [["a"] * 2, ["b"] * 2]}, "give levels"),
        ({"groups": [["a"] * 2, ["z"] * 2], "levels": ["a", "b"]}, "node 1 has the group 'z'"),
        ({"groups": [["a"] * 2, ["b"]], "levels": ["a", "b"]}, "2 samples and groups of shape"),
        ({"confidence": 95}, "between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_said(change, message):
    given = {"labels": [[1.0, 2.0], [3.0, 4.0]], "grid": [1, 2, 3, 4], "least_count": 1, **change}
    with pytest.raises(DataError, match=message):
        ew.kaplan_meier("path", **given)
    with pytest.raises(UnknownName, match="wilcoxon"):
        ew.log_rank("path", given["labels"], [[0, 1]] * 2, [0, 1], weights="wilcox")
