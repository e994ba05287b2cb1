"""A trace that grows is read as it comes, and drawn in a line of blocks."""

import pytest
from trace_rows import write_trace

from edgewise.cli.peer_view import BLOCKS, TraceTail, curve


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.csv"


def test_a_trace_is_read_new_rows_and_never_half_a_line(path):
    write_trace(path, [1.0, 0.5], end="30,8,0.1,0.2")
    trace = TraceTail(path)
    trace.read_new_rows()
    assert trace.points == [(10, 1.0), (20, 0.5)]
    with trace.path.open("a") as file:
        file.write("5,0.5,100\n40,8,0.1,nan,0.5,100\n")
    trace.read_new_rows()
    assert trace.points[:3] == [(10, 1.0), (20, 0.5), (30, 0.25)]
    assert len(trace.points) == 4


def test_rows_that_are_written_again_replace_those_before(path):
    write_trace(path, [1.0, 0.5, 0.25], end="20,8,0.1,0.4,0.5,100\n")
    trace = TraceTail(path)
    trace.read_new_rows()
    assert trace.points == [(10, 1.0), (20, 0.4)]
    write_trace(path, [7.0])
    trace.read_new_rows()
    assert trace.points == [(10, 7.0)]


def test_a_long_trace_is_thinned_and_keeps_its_ends(path):
    write_trace(path, [1.0 / (k + 1) for k in range(20_000)])
    trace = TraceTail(path)
    trace.read_new_rows()
    assert 1000 < len(trace.points) <= 4000
    assert (trace.points[0][0], trace.points[-1][0]) == (10, 200_000)


def test_no_trace_no_curve(path):
    trace = TraceTail(path)
    trace.read_new_rows()
    assert curve(trace.points, 60) == ""
    assert curve([(10, float("inf")), (20, 0.0), (30, float("nan"))], 60) == ""


def test_the_curve_is_of_logarithms_over_rounds():
    assert curve([(k, 10.0**-k) for k in range(8)], 8) == BLOCKS[::-1]
    assert curve([(10, 0.1)], 5) == BLOCKS[0] * 5
    late = curve([(0, 1.0), (90, 1.0), (100, 1e-9)], 10)
    assert late == BLOCKS[-1] * 9 + BLOCKS[0]
