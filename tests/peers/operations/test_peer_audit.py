"""`audit.jsonl`: what is changed, dropped, put in or cut off shows."""

import json

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import call

from edgewise.errors import InputError
from edgewise.peers.operations.audit import FILE, Audit, verified


@pytest.fixture
def folder(tmp_path):
    """Of two starts; the second goes on in the same chain."""
    for start in range(2):
        audit = Audit(tmp_path)
        audit.note("start", round=10 * start)
        audit.note("sent", left={"vectors": 800 + start, "greetings": 90})
    return tmp_path


def test_a_chain_that_nobody_touched_hangs_together(folder):
    found = verified(folder)
    assert (found.lines, found.wrong) == (4, "")
    assert found.left == {"vectors": 1601, "greetings": 180}
    assert found.head == Audit(folder).head
    assert (folder / FILE).stat().st_mode & 0o077 == 0
    for k in range(4):
        assert json.loads((folder / FILE).read_text().splitlines()[k])["n"] == k


def changed(lines):
    lines[1] = lines[1].replace(b"800", b"100")


def dropped(lines):
    del lines[1]


def put_in(lines):
    lines.insert(2, lines[1])


def swapped(lines):
    lines[1], lines[2] = lines[2], lines[1]


def emptied(lines):
    lines[2] = b"{}"


@pytest.mark.parametrize("touch", [changed, dropped, put_in, swapped, emptied])
def test_a_line_that_somebody_touched_breaks_it(folder, touch):
    lines = (folder / FILE).read_bytes().splitlines()
    touch(lines)
    (folder / FILE).write_bytes(b"\n".join(lines) + b"\n")
    assert verified(folder).wrong.startswith("line ")
    done = call("audit", "verify", folder, code=1)
    assert "BROKEN: line" in done.stdout


def test_what_was_cut_off_shows_to_whoever_has_the_hash(folder):
    head = verified(folder).head
    lines = (folder / FILE).read_bytes().splitlines()
    (folder / FILE).write_bytes(b"\n".join(lines[:-1]) + b"\n")
    assert verified(folder).wrong == ""
    assert "lines were cut off" in verified(folder, head).wrong
    shorter = verified(folder).head
    Audit(folder).note("end")
    assert verified(folder, shorter).wrong == "", "it has grown since"


def test_a_line_that_a_crash_cut_short_is_told_of_and_believed(folder):
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole[:-20])
    assert verified(folder).wrong == ""
    Audit(folder).note("start")
    found = verified(folder)
    assert (found.lines, found.wrong) == (5, "")
    assert json.loads((folder / FILE).read_bytes().splitlines()[-1])["cut_short"]


def test_what_the_command_says(folder):
    told = call("audit", "verify", folder).stdout
    assert "4 lines hang together" in told
    assert "1.6 kB of vectors" in told
    assert "say what to do" in call("audit", code=2).stderr
    with pytest.raises(InputError, match="give a peer's folder"):
        verified(folder / "none")
