"""Files are written whole or not at all, by one function."""

import os
import stat
import tomllib

import pytest

from edgewise.errors import InputError
from edgewise.fileio import read_toml, replacing, write_json, write_toml


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("alone", [True, False])
def test_readers_see_the_old_file_or_the_new(tmp_path, alone):
    path = tmp_path / "deep" / "file"
    with replacing(path, alone=alone) as file:
        file.write(b"old")
        file.flush()
        assert not path.exists()
    with replacing(path, alone=alone) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, alone, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with replacing(path, alone=alone) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path):
    (tmp_path / "file.part").write_bytes(b"of one that was killed")
    with replacing(tmp_path / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert names(tmp_path) == ["file"]


def test_two_may_write_at_once_where_they_say_so(tmp_path):
    path = tmp_path / "file"
    with replacing(path, alone=False) as first, replacing(path, alone=False) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"  # the last to end
    assert names(tmp_path) == ["file"]


def test_permissions(tmp_path):
    old = os.umask(0o022)
    try:
        for secret in (True, False):
            with replacing(tmp_path / f"{secret}", secret=secret) as file:
                mode = stat.S_IMODE(os.stat(file.name).st_mode)  # while it is written
            assert mode == (0o600 if secret else 0o644)
            assert stat.S_IMODE((tmp_path / f"{secret}").stat().st_mode) == mode
    finally:
        os.umask(old)


def test_durable_files_are_synced_with_their_folder_and_others_not(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    with replacing(tmp_path / "status", durable=False) as file:
        file.write(b"now")
    assert synced == []
    with replacing(tmp_path / "state") as file:
        inode = os.fstat(file.fileno()).st_ino
    assert synced == [inode, tmp_path.stat().st_ino]


def test_toml_that_is_written_can_be_read(tmp_path):
    values = {"a": 'x"\\\n\x7fé', "b": True, "c": 3, "d": 1e-7, "e": ["1", "b"], "f": float("inf")}
    write_toml(tmp_path / "a.toml", values)
    assert read_toml(tmp_path / "a.toml") == values
    assert tomllib.loads((tmp_path / "a.toml").read_text()) == values


def test_what_cannot_be_read_or_written(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(InputError, match="is no TOML file"):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert not (tmp_path / "a.json").exists()
