"""Checkpoints on disk: what goes in comes out, and nothing else is taken for one."""

import json
import zlib

import numpy as np
import pytest

from edgewise.running.checkpoint_file import MAGIC, OPENING, CheckpointFile, read, write

HEAD = {"round": 7, "members": [1, 2], "mark": "x"}
ARRAYS = {
    "leaf0": np.random.default_rng(0).standard_normal((1, 5)),
    "leaf1": np.arange(6, dtype=np.int64).reshape(2, 3).T,
    "leaf2": np.array(3, np.uint32),
    "leaf3": np.zeros((0, 4), np.float32),
    "out.1.6": np.frombuffer(b"a frame", np.uint8),
    "out.2.6": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "state", HEAD, ARRAYS)
    return tmp_path / "state"


def test_what_goes_in_comes_out(path):
    head, arrays = read(path)
    assert head == HEAD
    assert list(arrays) == list(ARRAYS)
    for name, a in ARRAYS.items():
        assert arrays[name].dtype == a.dtype
        assert arrays[name].shape == a.shape
        assert np.array_equal(arrays[name], a)


@pytest.mark.parametrize("length", [0, 5, OPENING.size, OPENING.size + 20, -20, -1])
def test_a_part_of_one_is_refused(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"bytes|checkpoint"):
        read(path)


def test_more_than_was_written_is_refused(path):
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ValueError, match="instead of"):
        read(path)


def test_another_file_is_refused(tmp_path):
    np.savez(tmp_path / "model.npz", x=np.ones(100))
    with pytest.raises(ValueError, match="not a checkpoint"):
        read(tmp_path / "model.npz")


def test_objects_are_never_read(tmp_path):
    contents = json.dumps([{}, [["leaf0", "|O", [1], 0]]]).encode()
    opening = OPENING.pack(MAGIC, len(contents), zlib.crc32(contents))
    (tmp_path / "state").write_bytes(opening + contents + bytes(8))
    with pytest.raises(ValueError, match=r"leaf0 has type \|O"):
        read(tmp_path / "state")


def test_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match=r"x has type \|O"):
        write(tmp_path / "state", {}, {"x": np.array([None])})
    assert not list(tmp_path.iterdir())


def flip_byte(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_flipped_byte_is_refused_by_the_name_of_its_part(path):
    end = len(path.read_bytes())
    flip_byte(path, end - 1)
    with pytest.raises(ValueError, match=r"out\.2\.6 is damaged"):
        read(path)
    with CheckpointFile(path) as file:  # the others are as they were
        assert np.array_equal(file["leaf0"], ARRAYS["leaf0"])
    flip_byte(path, end - 1)
    flip_byte(path, OPENING.size + 2)
    with pytest.raises(ValueError, match="its head is damaged"):
        read(path)


def test_the_former_one_stays_until_the_next_is_whole(path, monkeypatch):
    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr("edgewise.fileio.os.fsync", full)
    with pytest.raises(OSError, match="space"):
        write(path, {"round": 8}, {})
    assert read(path)[0] == HEAD
