"""Named data sets, against a web server on this machine."""

import bz2
import hashlib
import logging
import lzma
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from paths import SHARED
from sklearn.datasets import load_breast_cancer, load_iris

from edgewise.data import dataset, named, names
from edgewise.errors import DownloadError, UnknownName

TEXT = b"+1 1:0.5 3:2\n-1 22:1\n"
ADDRESS_OF_NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens


class Handler(SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path.endswith("/w8a.t"):  # promises more than it sends
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(TEXT)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "binary").mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.asked, server.folder = [], folder / "binary"
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGEWISE_MIRROR", raising=False)
    monkeypatch.setenv("EDGEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_bundled_sets_need_no_network(cache):
    X, y = dataset("breast_cancer")
    expected = load_breast_cancer()
    np.testing.assert_array_equal(X, expected.data)
    np.testing.assert_array_equal(y, expected.target)
    np.testing.assert_array_equal(dataset("iris")[0], load_iris().data)
    shapes = {name: dataset(name)[0].shape for name in ("diabetes", "digits", "wine")}
    assert shapes == {"diabetes": (442, 10), "digits": (1797, 64), "wine": (178, 13)}
    assert not cache.exists()


def test_names_and_unknown_names():
    assert names() == sorted(names())
    assert {"a9a", "a9a.t", "epsilon", "rcv1_train", "iris"} <= set(names())
    with pytest.raises(UnknownName, match="unknown data set 'a9b': did you mean 'a9a"):
        dataset("a9b")


def test_fetched_once_and_trusted_on_first_use(site, cache, caplog):
    packed = bz2.compress(TEXT)
    (site.folder / "ijcnn1.bz2").write_bytes(packed)
    with caplog.at_level(logging.WARNING, logger=named.__name__):
        X, y = dataset("ijcnn1", mirror=site.address)
    expected = np.zeros((2, 22))
    expected[[0, 0, 1], [0, 2, 21]] = [0.5, 2, 1]
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, [1, -1])
    assert "taken on trust" in caplog.text
    digest = hashlib.sha256(packed).hexdigest()
    assert (cache / "ijcnn1.bz2.sha256").read_text() == f"{digest}  ijcnn1.bz2\n"
    assert sorted(path.name for path in cache.iterdir()) == ["ijcnn1.bz2", "ijcnn1.bz2.sha256"]

    caplog.clear()
    again, _ = dataset("ijcnn1", mirror=site.address)
    np.testing.assert_array_equal(again.toarray(), expected)
    assert site.asked == ["/binary/ijcnn1.bz2"]
    assert caplog.text == ""


def test_a_changed_file_is_refused(site, cache):
    (site.folder / "w8a").write_bytes(TEXT)
    dataset("w8a", mirror=site.address)
    (cache / "w8a").write_bytes(TEXT + TEXT)
    with pytest.raises(DownloadError) as caught:
        dataset("w8a", mirror=site.address)
    for part in (hashlib.sha256(TEXT), hashlib.sha256(TEXT + TEXT)):
        assert part.hexdigest() in str(caught.value)
    assert f"Delete {cache / 'w8a'}" in str(caught.value)

    (cache / "w8a").unlink()
    assert dataset("w8a", mirror=site.address)[0].shape == (2, 300)


def test_a_download_with_a_wrong_known_digest_is_not_kept(site, cache):
    (site.folder / "a9a").write_bytes(TEXT)
    with pytest.raises(DownloadError, match=r"where f5d5ffd8d865ff41.* is expected"):
        dataset("a9a", mirror=site.address)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(("name", "shape"), [("a9a.t", (16281, 123)), ("mushrooms", (8124, 112))])
def test_the_known_digests_are_those_of_the_real_files(site, cache, monkeypatch, name, shape):
    packed = SHARED / f"{name}.svm.xz"
    if not packed.exists():
        pytest.skip(f"the shared test data is not beside this checkout: no {packed}")
    (site.folder / name).write_bytes(lzma.decompress(packed.read_bytes()))
    monkeypatch.setenv("EDGEWISE_MIRROR", site.address + "/")
    X, y = dataset(name)
    assert X.shape == shape
    assert len(y) == shape[0]
    assert [path.name for path in cache.iterdir()] == [name]


def test_the_older_name_of_a_file_is_tried_after_the_newer(site, cache):
    (site.folder / "epsilon_normalized.bz2").write_bytes(bz2.compress(TEXT))
    X, _ = dataset("epsilon", mirror=site.address)
    assert X.shape == (2, 2000)
    assert site.asked == ["/binary/epsilon_normalized.xz", "/binary/epsilon_normalized.bz2"]
    assert (cache / "epsilon_normalized.bz2").exists()


def test_a_download_cut_short_is_not_kept(site, cache):
    with pytest.raises(DownloadError, match=r"ended after 21 of 1000 bytes"):
        dataset("w8a.t", mirror=site.address)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("address", [ADDRESS_OF_NOBODY, "nonsense"])
def test_offline_says_where_to_put_the_file(tmp_path, address):
    with pytest.raises(DownloadError) as caught:
        dataset("real-sim", cache=tmp_path, mirror=address)
    message = str(caught.value)
    assert f"{address}/binary/real-sim.bz2" in message
    assert f"put real-sim.bz2 into {tmp_path} by hand" in message


def test_a_file_put_there_by_hand_is_used(tmp_path):
    (tmp_path / "phishing").write_bytes(TEXT)
    X, _ = dataset("phishing", cache=tmp_path, mirror=ADDRESS_OF_NOBODY)
    assert X.shape == (2, 68)
    assert (tmp_path / "phishing.sha256").exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError, match="EDGEWISE_CACHE"):
        dataset("phishing", cache=tmp_path / "file" / "cache", mirror=ADDRESS_OF_NOBODY)
