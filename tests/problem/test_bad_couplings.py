"""What users may hand in by mistake between neighbours: every one is refused, in words of use."""

import numpy as np
import pytest
import scipy.sparse as sp

import edgewise as ew
from edgewise.errors import EdgewiseError
from edgewise.problem.coupled import CoupledProblem

EQUAL = ew.Problem(cost=[ew.Quadratic([1.0, 1.0])] * 3)
UNEQUAL = ew.Problem(cost=[ew.Quadratic([1.0] * n) for n in (2, 1, 3)])
PATH = ew.Graph.path(3)
REST = {(1, 2): ew.Coupling()}


def couple(between, problem=EQUAL):
    return CoupledProblem(problem, PATH, between).edge_rows


BETWEEN = [
    (lambda: ew.NetworkLasso([1.0, 2.0, 3.0]), "3 weights, and the graph 2 edges"),
    (lambda: ew.NetworkLasso([]), "give a positive number"),
    (lambda: ew.NetworkLasso([1.0, 0.0]), "leave edges without a price out of the graph"),
    (lambda: ew.NetworkLasso(None), "weight is None: give real numbers"),
    (lambda: ew.NetworkLasso(np.nan), "weight has entries that are not finite"),
    (lambda: ew.NetworkLasso("1"), "weight is '1': give real numbers"),
    (lambda: ew.NetworkLasso(1.0, norm="2"), "norm is '2': give 1 or 2"),
    (lambda: ew.NetworkLasso(1.0, norm=True), "norm is True"),
    (lambda: ew.NetworkLasso(1.0, norm=np.array([1, 2])), "norm is array([1, 2])"),
    (lambda: ew.NetworkLasso(1.0, on=[]), "NetworkLasso: on is []"),
    (lambda: ew.NetworkLasso(1.0, on=[0, 0]), "name one twice"),
    (lambda: ew.NetworkHuber(1.0, [1.0, 2.0]), "delta is [1.0, 2.0]: give one positive number"),
    (lambda: ew.Shared([]), "Shared: coordinates is []"),
    (lambda: ew.Shared(None), "Shared: coordinates is None"),
    (lambda: ew.Shared(True), "Shared: coordinates is True"),
    (lambda: ew.Shared([[0, 1]]), "give their numbers"),
    (lambda: ew.Shared([1.0]), "give their numbers"),
    (lambda: ew.Shared({0, 1}), "give their numbers"),
    (lambda: ew.Shared([False, False]), "a mask that chooses nothing"),
    (lambda: ew.Shared([True]), "a mask has one entry per unknown"),
    (lambda: ew.Shared(slice(5, 9)), "are none of the 2 of node 0"),
    (lambda: ew.Shared([2]), "not among the 2 of node 0"),
    (lambda: ew.Coupling(sense=None), "sense is None"),
    (lambda: ew.Coupling(sense=[]), "sense is []"),
    (lambda: ew.Coupling(sense=3), "sense is 3"),
    (lambda: ew.Coupling(sense=b"="), "sense is b'='"),
    (lambda: ew.Coupling(sense=">="), "change the signs of A, B and c"),
    (lambda: ew.Coupling([[np.nan, 1.0]]), "A has entries that are not finite"),
    (lambda: ew.Coupling(sp.csr_array([[np.inf, 1.0]])), "A has entries that are not finite"),
    (lambda: ew.Coupling(np.array([[1j, 1.0]])), "give real numbers"),
    (lambda: ew.Coupling(sp.csr_array(np.array([[1j, 1.0]]))), "give real numbers"),
    (lambda: ew.Coupling([["1", "2"]]), "give real numbers"),
    (lambda: ew.Coupling(np.zeros((0, 2))), "A has shape (0, 2)"),
    (lambda: ew.Coupling(sp.coo_array(np.ones(2))), "A has shape (2,)"),
    (lambda: ew.Coupling(c=np.array([1j])), "c is"),
    (lambda: ew.Coupling(c="1"), "c is '1': give real numbers"),
    (lambda: ew.Coupling([[1.0] * 3], [[1.0] * 2]), "edge (0, 1): A has 3 columns, and node 0 has"),
    (lambda: ew.Coupling([[1.0] * 2], [[1.0]]), "edge (0, 1): B has 1 columns, and node 1 has 2"),
    (lambda: "lasso", "between is 'lasso': give Coupling(...), Shared(...), NetworkLasso"),
    (lambda: "", "between is ''"),
    (lambda: np.eye(2), "between is array([[1., 0.],"),
    (lambda: {(0, 1): {}, **REST}, "between (0, 1) is {}"),
    (lambda: {(0, 1): [], **REST}, "between (0, 1) is an empty list"),
    (lambda: {(0, 0): ew.Coupling(), **REST}, "couples a node with itself"),
    (lambda: {(0, 2): ew.Coupling(), **REST}, "no such edge"),
    (lambda: {(0.5, 1): ew.Coupling(), **REST}, "has the key (0.5, 1)"),
    (lambda: {(np.inf, 1): ew.Coupling(), **REST}, "has the key (inf, 1)"),
    (lambda: {"01": ew.Coupling(), **REST}, "has the key '01'"),
    (lambda: {frozenset((0, 1)): ew.Coupling(), **REST}, "no first end"),
]


@pytest.mark.parametrize(("make", "words"), BETWEEN, ids=range(len(BETWEEN)))
def test_it_is_refused_between_neighbours(make, words):
    with pytest.raises(EdgewiseError) as refused:
        couple(make())
    assert words in str(refused.value)


@pytest.mark.parametrize("coordinates", [[-1], slice(-1, None), slice(None)])
def test_coordinates_are_the_same_at_both_ends(coordinates):
    with pytest.raises(EdgewiseError, match="are other coordinates of node 0"):
        couple(ew.Shared(coordinates), UNEQUAL)


@pytest.mark.parametrize("dtype", [int, bool])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_whole_numbers_and_truths_are_numbers(dtype, wrap):
    rows = couple(ew.Coupling(wrap(np.array([[1, 0]], dtype))))
    A = rows[0].A.toarray() if sp.issparse(rows[0].A) else rows[0].A
    assert A.dtype == np.float64
    assert A.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    "coordinates", [(0, 1), range(2), [0, 1], [True, True], slice(0, 2), [-2, 1]]
)
def test_ways_to_name_coordinates(coordinates):
    assert [len(r.c) for r in couple(ew.Shared(coordinates))] == [2, 2]


def test_what_is_listed_once_holds_on_all_edges():
    assert [len(r.c) for r in couple(t for t in [ew.Shared([0])])] == [1, 1]


DATA = (np.eye(2), [1.0, 2.0])
PROBLEMS = [
    (lambda: ew.Problem(cost=[]), "there are no nodes"),
    (lambda: ew.Problem(cost={0: ew.Linear([1.0])}), "a list with one, or None, per node"),
    (lambda: ew.Problem(cost=np.eye(3)), "a list with one, or None, per node"),
    (lambda: ew.Problem(cost="abc"), "cost is 'abc'"),
    (lambda: ew.Problem(cost=ew.Quadratic), "cost is <class"),
    (lambda: ew.Problem([3, 4], ew.Squared(), cost=[ew.Linear([1.0]), None]), "node 0 has no (X"),
    (lambda: ew.Problem([(np.eye(2),), DATA], ew.Squared(), cost=ew.Linear([1.0] * 2)), "node 0"),
    (
        lambda: ew.Problem(
            [(np.zeros((0, 2)), []), None], ew.Squared(), cost=[None, ew.Linear([1.0])]
        ),
        "node 0 has no samples",
    ),
    (
        lambda: ew.Problem(
            [DATA, None], ew.Squared(), weights="sample", cost=[None, ew.Linear([1.0])]
        ),
        "data at every node",
    ),
    (
        lambda: ew.Problem(cost=[ew.Linear([1.0]), ew.Linear([1.0] * 2)], penalty=ew.L1),
        "is no penalty",
    ),
    (lambda: ew.Quadratic([]), "Quadratic of no unknowns"),
    (lambda: ew.Quadratic(np.zeros((0, 0))), "Quadratic of no unknowns"),
    (lambda: ew.Linear([]), "Linear of no unknowns"),
    (lambda: ew.Quadratic(np.array([1j])), "give real numbers"),
    (lambda: ew.Quadratic(None), "Q is None: give real numbers"),
    (lambda: ew.Budget([1.0, 1.0], 1.0, [0.0] * 2, [1.0] * 3), "other lengths than a"),
    (lambda: ew.Box(np.inf, np.inf), "no number is in such a box"),
]


@pytest.mark.parametrize(("make", "words"), PROBLEMS, ids=range(len(PROBLEMS)))
def test_it_is_refused_at_nodes(make, words):
    with pytest.raises(EdgewiseError) as refused:
        make()
    assert words in str(refused.value)


LABELLED = [(np.eye(3), np.arange(3))] * 3


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (lambda: ew.Problem(LABELLED, ew.Multinomial(3)), "Multinomial has 3: fit one class"),
        (lambda: ew.Problem([DATA] * 3, ew.Squared(), intercept=True), "add a column of ones"),
    ],
)
def test_what_couplings_do_not_go_with(problem, words):
    with pytest.raises(EdgewiseError, match=words):
        ew.solve(problem(), PATH, between=ew.Coupling())


def test_samples_that_stand_for_none_are_not_counted():
    assert repr(EQUAL) == "Problem(3 nodes, 0 samples, 2 unknowns)"
    mixed = ew.Problem([DATA, None], ew.Squared(), cost=[None, ew.Linear([1.0])])
    assert repr(mixed) == "Problem(2 nodes, 2 samples, 1 to 2 unknowns, Squared)"


def test_a_loss_of_no_data_asks_for_no_classes():
    problem = ew.Problem([None, None], ew.Logistic(), cost=ew.Linear([1.0]))
    assert repr(problem) == "Problem(2 nodes, 0 samples, 1 unknowns)"


def test_they_read_as_they_were_written():
    huber = ew.NetworkHuber(1.0, 0.2, on=[0, 2])
    made = [ew.Shared([0, 2]), ew.NetworkLasso(0.1), ew.NetworkRidge([1.0, 2.0]), huber]
    assert [repr(term) for term in made] == [
        "Shared([0, 2])",
        "NetworkLasso(0.1)",
        "NetworkRidge(2 weights)",
        "NetworkHuber(1, delta=0.2, on=[0, 2])",
    ]
