"""Networks grow, shrink and renew their certificates, as files."""

import os
import stat
from dataclasses import replace

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import MESH, RING, around, call, contents, peer, refused, said

from edgewise.peers.config import certificates
from edgewise.peers.config.peer_config import save
from edgewise.peers.operations.mesh import read_mesh


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def test_a_new_peer_is_known_to_its_neighbours():
    call("init", *RING, "--penalty", "l1:1", "--ridge", "0.5", "--port", "500")
    before = contents()
    told = said("add", "mesh", "--neighbours", "4,1")
    assert told["peer"]["id"] == 5
    assert told["changed"] == [f"peer{i}.toml" for i in range(5)]
    new = peer(5)
    assert (new.fit, new.penalty, new.mesh) == (peer(0).fit, ("l1:1",), peer(0).mesh)
    assert new.listen == "127.0.0.1:505"
    assert [(n.id, n.address, n.dial) for n in new.neighbours] == [
        (1, "127.0.0.1:501", False),
        (4, "127.0.0.1:504", False),
    ]
    for i in (1, 4):
        joined = peer(i).neighbours[-1]
        assert (joined.id, joined.address, joined.dial) == (5, new.listen, True)
    assert (around(0), around(2)) == ([1, 4], [1, 3])
    assert {peer(i).nodes for i in range(6)} == {6}
    keys = {name for name in before if not name.endswith(".toml")}
    assert {name: contents()[name] for name in keys} == {name: before[name] for name in keys}


def test_a_new_peer_elsewhere_and_with_its_own_penalty():
    words = ["--host", "h{id}.example.org", "--penalty", "0=l1:1"]
    call("init", *RING, *words)
    assert "on hosts of their own: give a --host" in refused("add", "mesh", "--neighbours", "1,2")
    host = ["--host", "new.example.org"]
    assert "give --penalty" in refused("add", "mesh", "--neighbours", "1", *host)
    warned = call("add", "mesh", "--neighbours", "1", *host, "--penalty", "box:0,1").stderr
    assert "peer 5 has one neighbour, 1," in warned
    assert (peer(5).penalty, peer(5).listen) == (("box:0,1",), "0.0.0.0:24705")
    assert peer(5).neighbours[0].address == "h1.example.org:24701"
    assert peer(1).neighbours[-1].address == "new.example.org:24705"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "neighbours are []"),
        (["--neighbours", "1,1"], "each once"),
        (["--neighbours", "7"], "has no peer 7: there are 0, 1, 2, 3, 4"),
        (["--neighbours", "a"], "--neighbours 'a' cannot be read"),
        (["--neighbours", "1", "--penalty", "l3:1"], "unknown penalty"),
        (["--neighbours", "1", "--host", "h.example.org"], "on this machine alone"),
        (["--neighbours", "1", "--days", "0"], "days is 0"),
    ],
)
def test_peers_that_cannot_be_added(words, message):
    call("init", *RING)
    before = contents()
    assert message in refused("add", "mesh", *words)
    assert contents() == before


def test_only_who_has_the_authority_and_all_peers_adds():
    call("init", *RING)
    key = (MESH / "authority.key").rename("safe.key")
    assert "where the authority's key is kept" in refused("add", "mesh", "--neighbours", "1,2")
    assert "where the authority's key is kept" in refused("renew", "mesh")
    key.rename(MESH / "authority.key")
    (MESH / "peer3.toml").unlink()
    assert "mesh has 4 of 5 peers" in refused("add", "mesh", "--neighbours", "1,2")
    assert "none has no peers" in refused("add", "none", "--neighbours", "1,2")


def test_a_peer_leaves_and_its_number_is_not_given_again():
    call("init", "--graph", "complete", "--nodes", 4)
    before = contents()
    told = said("leave", "mesh", 3)
    assert (told["changed"], told["connected"]) == ([f"peer{i}.toml" for i in range(3)], True)
    assert [around(i) for i in range(3)] == [[1, 2], [0, 2], [0, 1]]
    assert {peer(i).nodes for i in range(3)} == {3}
    for kind in ("toml", "pem", "key"):
        assert contents()[f"peer3.{kind}"] == before[f"peer3.{kind}"]
    assert sorted(read_mesh("mesh").left) == [3]
    assert "has no peer 3" in refused("leave", "mesh", 3)
    assert "has no peer 3" in refused("add", "mesh", "--neighbours", "3")
    assert "has no peer 3" in refused("renew", "mesh", 3)
    assert said("add", "mesh", "--neighbours", "0,1")["peer"]["id"] == 4
    assert peer(4).nodes == 4
    call("leave", "mesh", 0)
    assert (around(1), around(2), around(4)) == ([2, 4], [1], [1])
    assert [p["id"] for p in said("renew", "mesh")["peers"]] == [1, 2, 4]


def test_those_that_stay_stay_connected():
    call("init", "--graph", "path", "--nodes", 4)
    before = contents()
    assert "would be in several parts" in refused("leave", "mesh", 1)
    assert "no peer: give the number" in refused("leave", "mesh")
    assert contents() == before
    assert "peer 2 has one neighbour, 1," in call("leave", "mesh", 3).stderr
    call("leave", "mesh", 2)
    call("leave", "mesh", 1)
    assert (peer(0).nodes, around(0)) == (1, [])
    assert "has no peer but 0" in refused("leave", "mesh", 0)


def test_a_host_drops_a_neighbour_with_its_own_files_alone():
    call("init", *RING)
    for path in MESH.iterdir():
        if not path.name.startswith(("peer2", "authority.pem")):
            path.unlink()
    done = call("leave", "mesh", 3)
    assert "whether the others stay connected was not checked" in done.stdout
    assert (around(2), peer(2).nodes) == ([1], 4)
    assert "has no peer 3" in refused("leave", "mesh", 3)
    assert "peer 2 has no neighbour but 1" in refused("leave", "mesh", 1)


def test_folders_that_contradict_themselves():
    call("init", *RING)
    one = peer(1)
    save(replace(one, neighbours=one.neighbours[:1]))
    assert "peer2.toml names 1, whose configuration does not name 2" in refused("leave", "mesh", 4)
    save(replace(one, fit=replace(one.fit, seed=9)))
    assert "differ in seed: 0 and 9" in refused("add", "mesh", "--neighbours", "0,1")
    save(replace(one, path=MESH / "peer9.toml"))
    assert "peer9.toml is of peer 1" in refused("leave", "mesh", 4)


def test_certificates_are_renewed_by_the_same_authority():
    call("init", *RING, "--days", 2)
    before, old = contents(), peer(3).credentials()
    told = said("renew", "mesh", 3, "--days", 9)
    assert [p["files"] for p in told["peers"]] == [["peer3.pem", "peer3.key"]]
    after = contents()
    assert {n for n in after if after[n] != before[n]} == {"peer3.key", "peer3.pem"}
    authority, key, certificate = peer(3).credentials()
    assert authority == old[0]
    assert key != old[1]
    assert (certificates.expiry(certificate) - certificates.expiry(old[2])).days in (6, 7)
    assert certificates.expiry(certificate).isoformat() == told["peers"][0]["expires"]
    if os.name == "posix":
        assert stat.S_IMODE((MESH / "peer3.key").stat().st_mode) == 0o600
    (MESH / "peer1.key.part").write_text("left over by a crash")
    assert call("renew", "mesh").stdout.count("to its host") == 5
    assert not [name for name in contents() if name.endswith(".part")]
