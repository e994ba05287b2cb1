"""Metrics from sums over nodes: scikit-learn's of all samples together, and intervals by their
definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics
from sklearn.calibration import calibration_curve
from statsmodels.stats.proportion import proportion_confint

import edgewise as ew
from edgewise.errors import DataError, DisclosureError

SIZES = (70, 45, 85)
NODE = np.repeat(range(3), SIZES)
Z = 1.959963984540054


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 1.5, len(NODE))
    return (rng.random(len(p)) < p).astype(int), p


def by_node(*arrays):
    return [[a[i == NODE] for i in range(3)] for a in arrays]


def delong(y, s):
    """By all pairs."""
    a, b = s[y == 1], s[y == 0]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    return wins.mean(), np.sqrt(
        wins.mean(1).var(ddof=1) / len(a) + wins.mean(0).var(ddof=1) / len(b)
    )


def test_area_on_all_scores():
    y, p = drawn()
    p = np.round(p, 2)
    labels, scores = by_node(y, p)
    found = ew.metrics.roc_auc("ring", labels, scores, np.unique(p)[:-1], least_count=1)
    auc, error = delong(y, p)
    assert_allclose(found.auc, metrics.roc_auc_score(y, p), rtol=1e-12)
    assert_allclose([found.auc, found.standard_error], [auc, error], rtol=1e-12)
    own = [metrics.roc_auc_score(a, b) for a, b in zip(labels, scores, strict=True)]
    assert_allclose(found.nodes, own, rtol=1e-12)
    fpr, tpr, _ = metrics.roc_curve(y, p, drop_intermediate=False)
    # scikit-learn takes a score at the threshold for positive, cells have it below
    assert_allclose(found.fpr, fpr[1:-1][::-1])
    assert_allclose(found.tpr, tpr[1:-1][::-1])
    assert (found.positives, found.negatives) == (y.sum(), len(y) - y.sum())


def test_area_of_cells_has_the_exact_one_within_bounds():
    y, p = drawn(1)
    labels, scores = by_node(y, p)
    found = ew.metrics.roc_auc("ring", labels, scores, [0.2, 0.4, 0.6, 0.8], least_count=1)
    cells = np.searchsorted([0.2, 0.4, 0.6, 0.8], p)
    auc, error = delong(y, cells)
    assert_allclose([found.auc, found.standard_error], [auc, error], rtol=1e-12)
    low, high = found.bounds
    up, down = cells + 0.5 * y, cells - 0.5 * y  # positives of a cell all before, or all after
    assert_allclose(found.bounds, [metrics.roc_auc_score(y, a) for a in (down, up)], rtol=1e-12)
    assert low < metrics.roc_auc_score(y, p) < high
    assert_allclose(found.interval, [low - Z * error, min(high + Z * error, 1)], rtol=1e-12)


def test_cells_that_nodes_make_larger():
    rng = np.random.default_rng(7)
    p = rng.random(600)
    y = (rng.random(600) < p).astype(int)
    labels, chances = np.split(y, [150, 350]), np.split(p, [150, 350])
    found = ew.metrics.roc_auc("ring", labels, chances, coarsen=True)
    assert 5 < len(found.grid) < 19
    assert ew.metrics.roc_auc("ring", labels, chances, found.grid).auc == found.auc
    low, high = found.bounds
    assert low < metrics.roc_auc_score(y, p) < high
    for a, b in zip(labels, chances, strict=True):
        counts = [np.histogram(b[a == k], [0, *found.grid, 1])[0] for k in (0, 1)]
        assert not np.isin(counts, [1, 2, 3, 4]).any()


def test_calibration():
    y, p = drawn(2)
    labels, chances = by_node(y, p)
    found = ew.metrics.calibration_curve("ring", labels, chances, least_count=1)
    observed, predicted = calibration_curve(y, p, n_bins=10)
    assert_allclose(found.observed, observed, rtol=1e-12)
    assert_allclose(found.predicted, predicted, rtol=1e-12)
    low, high = proportion_confint(found.observed * found.samples, found.samples, method="wilson")
    assert_allclose(found.interval, [low, high], rtol=1e-10)
    assert_allclose(found.in_the_large, y.sum() / p.sum(), rtol=1e-12)
    assert_allclose(found.error, np.abs(observed - predicted) @ found.samples / len(y), rtol=1e-10)
    own = calibration_curve(labels[0], chances[0], n_bins=10)
    assert_allclose(found.nodes[0], own[::-1], rtol=1e-12)


def test_log_loss_and_squared_error():
    y, p = drawn(3)
    labels, chances = by_node(y, p)
    found = ew.metrics.log_loss("ring", labels, chances)
    assert_allclose(found.value, metrics.log_loss(y, p), rtol=1e-11)
    each = -np.log(np.where(y == 1, p, 1 - p))
    error = each.std(ddof=1) / np.sqrt(len(y))
    assert_allclose(found.standard_error, error, rtol=1e-10)
    assert_allclose(found.interval, [each.mean() - Z * error, each.mean() + Z * error], rtol=1e-10)
    assert_allclose(found.nodes[1], metrics.log_loss(labels[1], chances[1]), rtol=1e-12)
    brier = ew.metrics.mean_squared_error("ring", labels, chances)
    assert_allclose(brier.value, metrics.brier_score_loss(y, p), rtol=1e-11)
    names = np.array(["a", "b", "c"])
    rng = np.random.default_rng(0)
    wide, kinds = rng.dirichlet([1, 2, 3], len(y)), rng.integers(3, size=len(y))
    labels, chances = by_node(names[kinds], wide)
    found = ew.metrics.log_loss("ring", labels, chances, names.tolist())
    assert_allclose(found.value, metrics.log_loss(names[kinds], wide), rtol=1e-11)


def test_confusion():
    rng = np.random.default_rng(4)
    names = np.array(["a", "b", "c"])
    true = rng.integers(3, size=len(NODE))
    said = np.where(rng.random(len(true)) < 0.6, true, rng.integers(3, size=len(true)))
    y, predicted = names[true], names[said]
    found = ew.metrics.confusion_matrix("ring", *by_node(y, predicted), list("abc"), least_count=1)
    assert (found.counts == metrics.confusion_matrix(y, predicted)).all()
    assert_allclose(found.accuracy, metrics.accuracy_score(y, predicted))
    assert_allclose(found.recall, metrics.recall_score(y, predicted, average=None))
    assert_allclose(found.precision, metrics.precision_score(y, predicted, average=None))
    right = (y == predicted).sum()
    assert_allclose(found.interval, proportion_confint(right, len(y), method="wilson"))
    of_a = proportion_confint(found.counts[0, 0], found.counts[0].sum(), method="wilson")
    assert_allclose(found.recall_interval[:, 0], of_a)
    assert (found.nodes.sum(0) == found.counts).all()


def test_r2():
    rng = np.random.default_rng(5)
    y = 1e6 + rng.normal(size=len(NODE)) + NODE  # a mean that is large beside the spread
    said = y + 0.5 * rng.normal(size=len(y))
    labels, predicted = by_node(y, said)
    found = ew.metrics.r2("ring", labels, predicted)
    assert_allclose(found.value, metrics.r2_score(y, said), rtol=1e-8)
    own = [metrics.r2_score(a, b) for a, b in zip(labels, predicted, strict=True)]
    assert_allclose(found.nodes, own, rtol=1e-8)
    # the infinitesimal jackknife, by small weights on one sample after another
    moved, small = [], 1e-4
    for k in range(len(y)):
        weight = np.ones(len(y))
        weight[k] += small
        moved.append(
            (metrics.r2_score(y - 1e6, said - 1e6, sample_weight=weight) - own_of(y, said)) / small
        )
    assert_allclose(found.standard_error, np.sqrt(np.sum(np.square(moved))), rtol=1e-3)


def own_of(y, said):
    return metrics.r2_score(y - 1e6, said - 1e6)


def weighted_concordance(y, risk, node, weight):
    """By loops over pairs."""
    right = compared = 0.0
    for a in range(len(y)):
        for b in range(len(y)):
            later = abs(y[b]) > y[a] or (abs(y[b]) == y[a] and y[b] < 0)
            if node[a] == node[b] and y[a] > 0 and later:
                pair = weight[a] * weight[b]
                compared += pair
                right += pair * ((risk[a] > risk[b]) + 0.5 * (risk[a] == risk[b]))
    return right / compared


def test_concordance(monkeypatch):
    rng = np.random.default_rng(6)
    node = np.repeat([0, 1], [14, 17])
    y = rng.integers(1, 9, len(node)) * rng.choice([1.0, -1.0], len(node), p=[0.7, 0.3])
    risk = np.round(rng.normal(size=len(node)) - 0.2 * np.abs(y), 1)
    given = [[a[node == i] for i in range(2)] for a in (y, risk)]
    found = ew.metrics.concordance_index("path", *given)
    one = np.ones(len(node))
    value = weighted_concordance(y, risk, node, one)
    assert_allclose(found.value, value, rtol=1e-12)
    small = 1e-5
    moved = [
        (weighted_concordance(y, risk, node, one + small * e) - value) / small
        for e in np.eye(len(node))
    ]
    assert_allclose(found.standard_error, np.sqrt(np.sum(np.square(moved))), rtol=1e-3)
    first = node == 0
    own = weighted_concordance(y[first], risk[first], node[first], one[first])
    assert_allclose(found.nodes[0], own, rtol=1e-12)
    from edgewise.statistics.metrics import concordance

    monkeypatch.setattr(concordance, "CHUNK", 40)
    assert ew.metrics.concordance_index("path", *given).value == found.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: ew.metrics.roc_auc("ring", y, p), "node 0 has . (positive|negative) samples"),
        (lambda y, p: ew.metrics.calibration_curve("ring", y, p), "samples with chances up to"),
        (
            lambda y, p: ew.metrics.log_loss("ring", [*y[:2], y[2][:3]], [*p[:2], p[2][:3]]),
            "node 2 has 3 samples",
        ),
        (lambda y, p: ew.metrics.r2("ring", y, p, [5, 46, 5]), "node 1 has 45 samples"),
        (
            lambda y, p: ew.metrics.confusion_matrix("ring", y, [1 - a for a in y], [0, 1], 60),
            "of class . taken",
        ),
        (
            lambda y, p: ew.metrics.concordance_index("ring", [1.0 + a for a in y], p, 46),
            "node 1 has 45",
        ),
    ],
)
def test_too_few_are_refused(call, message):
    labels, chances = by_node(*drawn())
    with pytest.raises(DisclosureError, match=message):
        call(labels, chances)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda y, p: ew.metrics.roc_auc("ring", y, p[:2]),
            "labels of 3 nodes and predictions of 2",
        ),
        (lambda y, p: ew.metrics.roc_auc("ring", y, p, positive="yes"), "as positive="),
        (lambda y, p: ew.metrics.roc_auc("ring", y, p, [1, 0]), "numbers that grow"),
        (lambda y, p: ew.metrics.log_loss("ring", y, [2 * a for a in p]), "below 0 or do not add"),
        (lambda y, p: ew.metrics.log_loss("ring", y, p, [0, 7]), "has label 1, none of"),
        (lambda y, p: ew.metrics.r2("ring", y, [a[1:] for a in p]), "give one of each per sample"),
        (lambda y, p: ew.metrics.r2("ring", y, [a / 0 for a in p]), "not finite"),
        (lambda y, p: ew.metrics.calibration_curve("ring", y, [3 * a for a in p]), "not from 0 to"),
        (lambda y, p: ew.metrics.confusion_matrix("ring", y, y, [0]), "class 1, which is none"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_does_not_fit_is_said(call, message):
    labels, chances = by_node(*drawn())
    with pytest.raises(DataError, match=message):
        call(labels, chances)
