"""`make release` refuses what is not a release, and says why."""

import importlib.util
import subprocess
import zipfile

import pytest
from paths import ROOT


@pytest.fixture
def release(tmp_path, monkeypatch):
    """tools/release.py, in a repository of its own with nothing but a CHANGELOG."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for key in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(key, "nobody")
    git(tmp_path, "init", "--quiet")
    return module


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def committed(folder, changelog):
    (folder / "CHANGELOG.md").write_text(changelog)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a change")


def test_a_dated_heading_and_a_clean_tree_are_a_release(release, tmp_path):
    committed(tmp_path, "# Changes\n\n## Unreleased\n\n## 1.2.0 (2030-01-31)\n\nMuch.\n")
    assert release.not_ready("1.2.0") == []
    git(tmp_path, "tag", "v1.2.0")  # of this very commit
    assert release.not_ready("1.2.0") == []


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        ("# Changes\n\n## 1.2.0 (not published)\n\nMuch.\n", "no heading '## 1.2.0"),
        ("# Changes\n\n## 1.2.01 (2030-01-31)\n", "no heading '## 1.2.0"),
        ("## Unreleased\n\nMore.\n\n## 1.2.0 (2030-01-31)\n", "under '## Unreleased'"),
    ],
)
def test_a_changelog_that_lags_behind_is_named(release, tmp_path, changelog, said):
    committed(tmp_path, changelog)
    (only,) = release.not_ready("1.2.0")
    assert said in only


def test_a_tag_elsewhere_and_an_open_change_are_named(release, tmp_path):
    committed(tmp_path, "## 1.2.0 (2030-01-31)\n")
    git(tmp_path, "tag", "v1.2.0")
    committed(tmp_path, "## 1.2.0 (2030-01-31)\n\nMuch.\n")
    (tmp_path / "new.py").write_text("")
    uncommitted, tagged = release.not_ready("1.2.0")
    assert "not all is committed" in uncommitted
    assert "v1.2.0 is another commit" in tagged


@pytest.mark.parametrize("lacking", ["errors.py", "py.typed"])
def test_a_wheel_that_lacks_a_file_is_refused(release, tmp_path, lacking):
    package = tmp_path / "src" / "edgewise"
    package.mkdir(parents=True)
    for name in ("errors.py", "py.typed"):
        (package / name).write_text("")
    wheel = tmp_path / "edgewise-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in {"errors.py", "py.typed"} - {lacking}:
            file.writestr(f"edgewise/{name}", "")
    with pytest.raises(SystemExit, match=rf"lacks \['{lacking}'\]"):
        release.holds_all(tmp_path / "edgewise-1.2.0.tar.gz", wheel)
