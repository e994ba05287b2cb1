"""What is installed is what is tested: a wheel made from a source archive made from what is
committed, tried away from the source tree; by `make test-all` in an empty environment too."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])({!r}))"


@pytest.fixture(scope="module")
def release():
    """tools/release.py"""
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(what, source, folder):
    """By the setuptools that is here: nothing is fetched."""
    command = [sys.executable, "-c", BUILD.format(str(folder)), what]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no clone: git does not say what belongs to the source")
    major = int(importlib.metadata.version("setuptools").split(".")[0])
    assert major >= 77, "an older setuptools does not know the license field: pip install '.[dev]'"
    clone = tmp_path_factory.mktemp("clone")
    for name in listed.stdout.split("\0"):
        if name.startswith("src/") or ("/" not in name and (ROOT / name).is_file()):
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
    return built("build_sdist", clone, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def wheel(archive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return built("build_wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_package_and_none_beside(release, archive, wheel):
    release.holds_all(archive, wheel)
    with zipfile.ZipFile(wheel) as held:
        told = held.read(next(n for n in held.namelist() if n.endswith("METADATA"))).decode()
        entry = held.read(next(n for n in held.namelist() if n.endswith("entry_points.txt")))
        assert any(n.endswith("licenses/LICENSE") for n in held.namelist())
    assert f"Version: {PROJECT['version']}" in told
    assert "License-Expression: BSD-3-Clause" in told
    assert "# Edgewise" in told  # the README, which is the page at a package index
    assert b"edgewise = edgewise.cli:main" in entry


def test_it_works_away_from_the_source(release, wheel, tmp_path):
    with zipfile.ZipFile(wheel) as held:
        held.extractall(tmp_path / "site")
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}

    def python(*words):
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    where = python("-c", release.IMPORTS + "print(edgewise.__file__, edgewise.__version__)").split()
    assert Path(where[0]).is_relative_to(tmp_path)
    assert where[1] == PROJECT["version"]
    template = "from edgewise.plotting.page import read; print(read('page.html'))"
    assert "<html" in python("-c", template)
    said = python("-c", "from edgewise.cli import main; main()", "--version")
    assert said == f"edgewise {PROJECT['version']}"


@pytest.mark.exhaustive
def test_it_works_in_an_empty_environment(release, wheel):
    """pip installs it there with what it needs, from the index."""
    index = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "lazy-loader"]
    if subprocess.run([*index, "--dest", wheel.parent / "index"], capture_output=True).returncode:
        pytest.skip("no package index can be reached")
    release.try_out(wheel, PROJECT["version"])


def test_every_extra_is_said_to_be_for_something():
    page = (ROOT / "docs" / "install.md").read_text()
    extras = set(PROJECT["optional-dependencies"])
    assert set(re.findall(r"`edgewise\[(\w+)\]`", page)) == extras
    missing = set(re.findall(r"edgewise\[(\w+)", " ".join(all_messages())))
    assert missing <= extras, "a message names an extra that there is not"


def all_messages():
    return [p.read_text() for p in (ROOT / "src").rglob("*.py")]
