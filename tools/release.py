"""`make wheel` and `make release`: a source archive and a wheel, built, checked, installed into an
environment of their own and tried there. Nothing is uploaded.

`make release` (`--release`) first asks whether this is a release: a version with its own heading in
CHANGELOG.md, nothing left under "Unreleased", all committed, and no such tag on another commit.
"""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
IMPORTS = """
import edgewise
for name in set(edgewise.__all__) - {"Peer"}:  # Peer needs the extra `peers`
    getattr(edgewise, name)
"""
# has a known answer (`distance` is from the centralised one), and takes a second
SOLVE = """solve breast_cancer --scale --normalize --nodes 4 --graph ring --ridge 0.1 --method pdmm
--rounds 200 --tol 1e-8 --no-save --json"""


def main(arguments: list[str]) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for_release = arguments == ["--release"]
    if arguments and not for_release:
        sys.exit(f"{' '.join(arguments)}: give --release, or nothing")
    if for_release and (missing := not_ready(version)):
        sys.exit(f"{version} is not ready:\n" + "\n".join(f"- {m}" for m in missing))
    archive, wheel = build(version)
    holds_all(archive, wheel)
    try_out(wheel, version)
    print(f"built and tried: {archive.relative_to(ROOT)}, {wheel.relative_to(ROOT)}")
    if for_release:
        print(
            f"next, by hand:\n"
            f"  git tag --annotate v{version} --message 'Edgewise {version}'\n"
            f"  git push origin v{version}\n"
            f"  .venv-build/bin/twine upload dist/*\n"
            f"then raise `version` in pyproject.toml, and begin '## Unreleased' in CHANGELOG.md"
        )


def not_ready(version: str) -> list[str]:
    """What keeps this commit from being the release of that version."""
    missing = []
    log = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", log, re.MULTILINE):
        missing.append(
            f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)': write it, or raise "
            "`version` in pyproject.toml"
        )
    left = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
    if left and left[1].strip():
        missing.append("CHANGELOG.md has changes under '## Unreleased': move them to the version")
    if git("status", "--porcelain"):
        missing.append("not all is committed: see git status")
    tagged = git("tag", "--list", f"v{version}") and git("rev-list", "-n1", f"v{version}")
    if tagged and tagged != git("rev-parse", "HEAD"):
        missing.append(f"v{version} is another commit, {tagged[:9]}: raise `version`")
    return missing


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def build(version: str) -> tuple[Path, Path]:
    """The wheel is made from the source archive, so that it shows what the archive lacks."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    archive = DIST / f"edgewise-{version}.tar.gz"
    wheel = DIST / f"edgewise-{version}-py3-none-any.whl"
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel)
    return archive, wheel


def holds_all(archive: Path, wheel: Path) -> None:
    """Every file of the package, and nothing beside it. What is no Python, a wheel lacks as soon as
    package-data forgets it, and no test of a source tree notices."""
    package = ROOT / "src" / "edgewise"
    files = (p for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    own = {p.relative_to(package).as_posix() for p in files}
    held = set(zipfile.ZipFile(wheel).namelist())
    lacking = sorted(name for name in own if f"edgewise/{name}" not in held)
    beside = sorted(n for n in held if not re.match(r"edgewise(-[^/]+\.dist-info)?/", n))
    if lacking or beside:
        sys.exit(f"{wheel.name} lacks {lacking}, and has {beside} beside the package")
    with tarfile.open(archive) as source:
        if not any(name.endswith("/LICENSE") for name in source.getnames()):
            sys.exit(f"{archive.name} has no LICENSE")


def try_out(wheel: Path, version: str) -> None:
    """In a new environment, far from this folder."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", "env", at=folder)
        programs = Path(folder) / "env" / "bin"
        pins = ROOT / "constraints.txt"
        run(programs / "python", "-m", "pip", "install", "-q", "-c", pins, wheel, at=folder)
        run(programs / "python", "-c", IMPORTS, at=folder)
        said = run(programs / "edgewise", "--version", at=folder, told=True).strip()
        if said != f"edgewise {version}":
            sys.exit(f"edgewise --version says {said!r}, not 'edgewise {version}'")
        result = json.loads(run(programs / "edgewise", *SOLVE.split(), at=folder, told=True))
        if not result["converged"] or result["distance"] > 1e-6:
            sys.exit(f"the installed wheel solves wrongly: {result}")


def run(*command: object, at: str | Path = ROOT, told: bool = False) -> str:
    """Fails if the command does; its output, where that is to be told."""
    words = [str(part) for part in command]
    print("+", " ".join(words if len(words[-1]) < 200 else [*words[:-1], "..."]), flush=True)
    done = subprocess.run(words, cwd=at, text=True, stdout=subprocess.PIPE if told else None)
    if done.returncode:
        sys.exit(f"failed: {words[0]} ended with {done.returncode}")
    return done.stdout or ""


if __name__ == "__main__":
    main(sys.argv[1:])
