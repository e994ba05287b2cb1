"""`edgewise network init` writes what every peer needs, or nothing."""

import os
import stat
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import edgewise as ew

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import MESH, RING, around, call, contents, peer, refused, said

from edgewise.cli import network
from edgewise.cli.network_options import (
    NETWORK_COMMANDS,
    AddOptions,
    InitOptions,
    LeaveOptions,
    RenewOptions,
)
from edgewise.cli.options import COMMANDS
from edgewise.peers.config.peer_config import Fit, load, read


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def test_init_writes_what_every_peer_needs():
    told = said("init", *RING)
    assert (told["nodes"], told["edges"]) == (5, ew.Graph.ring(5).edges.tolist())
    expected = {f"peer{i}.{kind}" for i in range(5) for kind in ("toml", "pem", "key")}
    assert set(contents()) == expected | {"authority.key", "authority.pem"}
    for i in range(5):
        config = peer(i)  # with all checks of keys and certificates
        assert (config.mesh, config.id, config.nodes) == (told["mesh"], i, 5)
        assert config.listen == f"127.0.0.1:{24700 + i}"
        assert around(i) == ew.Graph.ring(5).neighbours(i).tolist()
        for n in config.neighbours:
            assert n.address == peer(n.id).listen
            back = next(b for b in peer(n.id).neighbours if b.id == i)
            assert n.dial == (i < n.id) != back.dial
        assert config.fit == Fit(weights="sample")
        row = told["peers"][i]
        names = [f"peer{i}.toml", f"peer{i}.pem", f"peer{i}.key", "authority.pem"]
        assert (row["address"], row["files"]) == (config.listen, names)
    secret = [name for name in contents() if name.endswith(".key")]
    assert len({contents()[name] for name in secret}) == 6
    if os.name == "posix":
        assert {stat.S_IMODE((MESH / name).stat().st_mode) for name in secret} == {0o600}


def test_init_says_what_to_copy_where():
    text = call("init", *RING, "--host", "peer{id}.example.org").stdout
    assert "peer3.toml peer3.pem peer3.key" in text
    assert "with authority.pem" in text
    assert "peer3.example.org:24703" in text
    assert "authority.key stays here" in text
    assert "edgewise node peer0.toml" in text


def test_every_field_of_a_fit_has_its_option():
    words = ["--method", "svr-pd", "--set", "batch=4", "--loss", "huber:2", "--ridge", "0.1"]
    words += ["--intercept", "--classes", "1,2,5", "--features", "30", "--rounds", "7"]
    words += ["--seconds", "2", "--tol", "1e-9", "--seed", "3", "--eta", "0.25", "--rho", "theory"]
    words += ["--dtype", "float32", "--wire", "float32", "--dual-noise", "0.1"]
    words += ["--weights", "node", "--standardize", "--holdout", "0.2", "--summary", "HC1"]
    words += ["--masked"]
    words += ["--offset", "o", "--exposure", "e", "--case-weight", "w", "--trials", "t"]
    call("init", *RING, *words, "--patience", "0.5", "--bits", 8)
    fit = peer(4).fit
    usual = [f.name for f in fields(Fit) if getattr(fit, f.name) == f.default]
    noise = {"dp_epsilon": 2.0, "dp_delta": 1e-6, "dp_clip": 0.5, "dp_row_norm": 3.0}
    noise["dp_rounds"] = 40
    assert usual == [*noise, "mode"]
    given = [w for name, value in noise.items() for w in (f"--{name.replace('_', '-')}", value)]
    call("init", *RING, *given, "--out", "private")
    assert load(Path("private/peer4.toml")).fit == Fit(weights="sample", **noise)
    call("init", *RING, *words, "--mode", "strict", "--out", "other")
    assert load(Path("other/peer4.toml")).fit == replace(fit, mode="strict", bits=None, patience=1)
    assert (fit.set, fit.classes, fit.eta, fit.rho) == (("batch=4",), (1, 2, 5), 0.25, "theory")
    assert {f.name for f in fields(Fit)} <= {f.name for f in fields(InitOptions)}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--bits", 8, "--mode", "strict"], "bits is for tolerant peers"),
        (
            ["--dual-noise", 1, "--method", "nids", "--eta", 0.1, "--mode", "strict"],
            "nids has no duals",
        ),
    ],
)
def test_what_does_not_go_together(words, why):
    assert why in refused("init", *RING, *words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--method", "auto"], ()),  # it is settled when the data are there
        (["--method", "saga-pd"], ("batch=8",)),
        (["--method", "svr-pd", "--set", "first=5"], ("first=5", "batch=8")),
        (["--method", "saga-pd", "--set", "batch=1"], ("batch=1",)),
        (["--method", "pd"], ()),
        (["--method", "pdmm"], ()),
        (["--method", "sk-pd"], ()),  # its batches are of coordinates
        (
            ["--method", "network-svrg", "--set", "mu=1", "--eta", "0.1", "--mode", "strict"],
            ("mu=1", "batch=8"),
        ),
    ],
)
def test_no_gradient_is_of_a_single_sample_unless_asked_for(words, expected):
    call("init", *RING, *words)
    assert peer(0).fit.set == expected


def test_from_five_peers_on_each_has_four_neighbours_unless_told_otherwise():
    for nodes, degree in ((4, 2), (5, 4), (8, 4)):
        call("init", "--nodes", nodes, "--out", f"of-{nodes}")
        for i in range(nodes):
            assert len(read(f"of-{nodes}/peer{i}.toml").neighbours) == degree
    call("init", "--nodes", 8, "--graph", "ring", "--out", "ring")
    assert len(read("ring/peer0.toml").neighbours) == 2


def test_hosts_ports_and_graphs():
    Path("edges.txt").write_text("0 1\n2 1\n0 2\n2 3\n3 1\n")
    call("init", "--edges", "edges.txt", "--host", "h{id}.example.org", "--port", 500)
    assert around(1) == [0, 2, 3]
    assert peer(2).listen == "0.0.0.0:502"
    assert peer(0).neighbours[1].address == "h2.example.org:502"
    call("init", "--graph", "random", "--nodes", 6, "--edges", 9, "--seed", 4, "--out", "b")
    expected = ew.Graph.random(6, 9, seed=4)
    for i in range(6):
        listed = [n.id for n in read(f"b/peer{i}.toml").neighbours]
        assert listed == expected.neighbours(i).tolist()
    call("init", "--graph", "torus", "--nodes", 6, "--rows", 2, "--host", "::1", "--out", "c")
    assert read("c/peer5.toml").listen == "[::1]:24705"


def test_penalties_go_to_their_peers():
    words = ["--penalty", "2-3=l1:2", "--penalty", "l1:1", "--penalty", "3=box:-1,1"]
    call("init", *RING, *words, "--penalty", "4=none")
    bare = [("l1:1",), ("l1:1",), ("l1:2",), ("box:-1,1",), ()]
    assert [peer(i).penalty for i in range(5)] == bare


def test_only_neighbours_of_leaves_learn_gradients():
    warned = call("init", "--graph", "star", "--nodes", 3).stderr
    assert "peer 1 has one neighbour, 0, which learns each of its gradients" in warned
    assert warned.count("WARNING") == 2
    assert call("init", *RING, "--out", "b").stderr == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "3", "--method", "saga"], "unknown method 'saga'"),
        (["--nodes", "3", "--set", "batch=2"], "that auto is yet to choose: name one"),
        (
            ["--nodes", "3", "--method", "pmgt-saga", "--mode", "strict"],
            "eigenvalue of the whole network",
        ),
        (["--nodes", "3", "--method", "nids", "--mode", "strict"], "eta 'auto' is the smallest"),
        (["--nodes", "3", "--method", "nids", "--eta", "0.1"], "never forgets"),
        (["--nodes", "3", "--method", "saga-pd", "--set", "depth=3"], "sets nothing that saga-pd"),
        (["--nodes", "3", "--loss", "lost"], "unknown loss"),
        (["--nodes", "3", "--penalty", "l3:1"], "unknown penalty"),
        (["--nodes", "3", "--penalty", "3=l1:1"], "are no nodes"),
        (["--nodes", "3", "--eta", "0.1,0.2"], "--eta is '0.1,0.2': give auto, theory, or one"),
        (["--nodes", "3", "--mode", "lax"], "--mode is 'lax': give tolerant or strict"),
        (["--nodes", "3", "--wire", "int8"], "--wire is 'int8'"),
        (["--nodes", "3", "--patience", "0"], "--patience is 0.0"),
        (["--nodes", "3", "--classes", "a,a"], "--classes is ['a', 'a']"),
        (["--nodes", "3", "--days", "0"], "days is 0"),
        (["--nodes", "3", "--port", "65534"], "127.0.0.1:65536 is no address"),
        (["--nodes", "3", "--host", "peer{i}"], "peer{i}:24700 is no address"),
        ([], "give --nodes"),
        (["--graph", "rng", "--nodes", "3"], "did you mean 'ring'"),
        (["--edges", "parts.txt"], "in 2 parts"),
        (["--edges", "gone.txt"], "there is no file gone.txt"),
        (["--edges", "words.txt"], "give two numbers a line"),
        (["--out", "parts.txt", "--nodes", "3"], "parts.txt is a file"),
        (
            [
                *[
                    "--nodes",
                    "3",
                    "--method",
                    "extra",
                    "--eta",
                    "1",
                    "--mode",
                    "strict",
                    "--penalty",
                    "l1:1",
                ]
            ],
            "extra cannot handle a penalty",
        ),
    ],
)
def test_networks_that_cannot_be_leave_nothing_behind(words, message):
    Path("parts.txt").write_text("0 1\n2 3\n")
    Path("words.txt").write_text("a b\n")
    assert message in refused("init", *words)
    assert not MESH.exists()


def test_baselines_run_strictly_with_a_step():
    call("init", *RING, "--method", "nids", "--eta", "0.1", "--mode", "strict")
    assert (peer(0).fit.method, peer(0).fit.eta) == ("nids", 0.1)


def test_a_network_is_not_written_over():
    call("init", *RING)
    before = contents()
    assert "holds a network already" in refused("init", *RING)
    for path in MESH.iterdir():
        if path.name != "peer4.key":
            path.unlink()
    assert "holds a network already (peer4.key)" in refused("init", *RING)
    assert contents() == {"peer4.key": before["peer4.key"]}


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("init", InitOptions),
        ("add", AddOptions),
        ("leave", LeaveOptions),
        ("renew", RenewOptions),
    ],
)
def test_help_has_every_option_and_the_exit_codes(command, options):
    text = call(command, "--help").stdout
    for field in fields(options):
        if field.name not in ("folder", "peer"):
            assert f"--{field.name.replace('_', '-')}" in text, field.name
    assert f"$ edgewise network {command}" in text
    assert "130 interrupted" in text
    assert options in NETWORK_COMMANDS
    assert options in COMMANDS


def test_options_come_from_files_too():
    Path("run.toml").write_text('nodes = 3\nridge = 0.5\nmode = "strict"\npenalty = ["l1:1"]\n')
    call("init", "--config", "run.toml", "--ridge", 2)
    assert (peer(2).fit.ridge, peer(2).fit.mode, peer(2).penalty) == (2.0, "strict", ("l1:1",))


def test_the_other_commands_need_no_cryptography():
    code = "import sys; sys.modules['cryptography'] = None; from edgewise.cli import main; main()"
    words = [sys.executable, "-c", code, "network", "init", "--nodes", "3"]
    missing = subprocess.run(words, capture_output=True, text=True, check=False)
    assert missing.returncode == 2  # of the command alone: all the others were imported
    assert "pip install 'edgewise[peers]'" in missing.stderr


def test_labels_are_numbers_where_all_are():
    assert network.labels(["1", "-2"]) == [1, -2]
    assert network.labels(["1", "2.5"]) == [1.0, 2.5]
    assert network.labels(["1", " b"]) == ["1", "b"]


@pytest.mark.parametrize(
    ("words", "ports", "next_one"),
    [
        ([], [0, 0, 0], 0),
        (["--metrics-port", 9464], [9464, 9465, 9466], 9467),
        (["--metrics-port", 9464, "--host", "p{id}.example.org"], [9464, 9464, 9464], 9464),
    ],
)
def test_where_metrics_are(place, words, ports, next_one):
    call("init", "--nodes", 3, *words)
    assert [peer(i).metrics for i in range(3)] == [f"127.0.0.1:{port}" for port in ports]
    host = ["--host", "p{id}.example.org"] if "--host" in words else []
    call("add", "mesh", "--neighbours", "0,1", *host)
    assert peer(3).metrics == f"127.0.0.1:{next_one}"
