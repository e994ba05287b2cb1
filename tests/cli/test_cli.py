"""The command line does what the API does, says so in one paragraph or one object, and keeps it."""

import inspect
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import call, said
from numpy.testing import assert_allclose, assert_array_equal
from paths import ROOT
from rich.console import Console
from sklearn.preprocessing import normalize, scale
from typer.testing import CliRunner

import edgewise as ew
from edgewise import spec
from edgewise.cli.app import app
from edgewise.cli.inputs import make_faults, make_graph, preprocess
from edgewise.cli.options import (
    COMMANDS,
    CompareOptions,
    ListOptions,
    ReportOptions,
    ReproduceOptions,
    SolveOptions,
    SplitOptions,
    TuneOptions,
)
from edgewise.cli.report import number_text, summarise, table_of
from edgewise.cli.summary import as_options
from edgewise.cli.tune import best
from edgewise.errors import GraphError, InputError, UnknownName
from edgewise.running import run_folders as runs
from edgewise.running.fitted_model import FittedModel
from edgewise.running.model_form import ModelForm
from edgewise.running.run import Run

V, N, P = 4, 48, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) * [1, 5, 0.2] + [0, 3, 0]
Y = np.where(X @ [1, -0.3, 2] + RNG.standard_normal(N) > 0, "sick", "well")
COMMON = ["data.npz", "--nodes", str(V), "--scale", "--graph", "ring", "--ridge", "0.1"]
SAGA = ["--method", "saga-pd"]
QUICK = [*COMMON, *SAGA, "--rounds", "40", "--record-every", "10", "--no-reference"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with data.npz in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    np.savez("data.npz", X=X, y=Y)
    return tmp_path


def problem(penalty=None, **more):
    shards = ew.split(scale(X), Y, nodes=V)
    return ew.Problem(shards, loss=ew.Logistic(ridge=0.1), penalty=penalty, **more)


# --- solve ----------------------------------------------------------------------------------------


def test_solve_is_the_api_and_its_folder_has_all_of_it():
    words = ["--normalize", "--how", "label", "--alpha", "2", "--seed", "3", "--graph-seed", "1"]
    words += ["--penalty", "l1:1e-3", "--penalty", "2=box:-1,1", "--weights", "sample"]
    words += ["--intercept", "--tol", "1e-6", "--out", "run", "--graph", "random", "--edges", "5"]
    told = said("solve", *COMMON, *SAGA, *words, "--rounds", 4000, "--record-every", 200)

    shards = ew.split(normalize(scale(X)), Y, nodes=V, how="label", alpha=2, seed=3)
    penalties = [ew.L1(1e-3), ew.L1(1e-3), ew.Box(-1, 1), ew.L1(1e-3)]
    same = ew.Problem(shards, ew.Logistic(0.1), penalties, weights="sample", intercept=True)
    graph = ew.Graph.random(V, 5, seed=1)
    result = ew.solve(same, graph, "saga-pd", rounds=4000, record_every=200, tol=1e-6, seed=3)
    assert told["converged"]
    assert told["message"] == result.message
    for name in ("rounds", "oracle_calls", "bytes_sent", "residual", "bregman", "consensus"):
        assert told[name] == result.trace[name][-1]
    assert told["distance"] == np.linalg.norm(result.x - ew.reference(same).x) < 1e-4

    saved = runs.load_run("run")
    assert saved.result == told
    assert_array_equal(saved.trace["residual"], result.trace["residual"])
    assert_array_equal(ew.Trace.load("run/trace.csv")["residual"], result.trace["residual"])
    arrays = runs.load_arrays("run")
    for name in ("x", "X", "duals"):
        assert_array_equal(arrays[name], getattr(result, name))
    assert arrays["classes"].tolist() == ["sick", "well"]
    assert saved.config["penalty"] == ["l1:1e-3", "2=box:-1,1"]
    assert Path(saved.config["data"]).is_absolute()
    assert "reached tol" in Path("run/log.txt").read_text()
    assert Path("run/plot.png").read_bytes().startswith(b"\x89PNG")

    model = ew.load_model("run")  # takes raw data
    margin = normalize(scale(X)) @ result.x[:-1] + result.x[-1]
    assert_array_equal(model.predict(X), np.where(margin > 0, "well", "sick"))
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-margin)), rtol=1e-12)
    assert told["score"] == np.mean(model.predict(X) == Y)


def test_without_data_it_runs_the_demo():
    told = said("solve", "--rounds", 20, "--no-reference", "--no-save", code=1)
    assert (told["samples"], told["nodes"], told["edges"], told["unknowns"]) == (569, 20, 50, 31)
    D, y = ew.data.dataset("breast_cancer")
    shards = ew.split(scale(D), y, nodes=20, how="label")
    demo = ew.Problem(shards, ew.Logistic(1e-3), ew.L1(2e-3), weights="sample", intercept=True)
    graph = ew.Graph.random(20, 50)
    result = ew.solve(demo, graph, rounds=20, tol=1e-7, reference=False)
    assert told["residual"] == result.trace["residual"][-1]
    assert not Path("out").exists()


def test_faults_and_settings_reach_the_run():
    words = ["--drop", "0.2", "--awake", "0.5,1,1,1", "--wipe", "3:20", "--fault-seed", "2"]
    words += ["--set", "batch=2", "--eta", "0.1", "--rho", "0.3,0.3,0.3,0.4", "--no-save"]
    told = said("solve", *QUICK, *words, code=1)
    faults = ew.Faults(drop=0.2, awake=[0.5, 1, 1, 1], wipe=(3, 20), seed=2)
    method = ew.PrimalDual(ew.SAGA(batch=2), eta=0.1, rho=[0.3, 0.3, 0.3, 0.4])
    ring = ew.Graph.ring(V)
    result = ew.solve(
        problem(), ring, method, rounds=40, record_every=10, faults=faults, reference=False
    )
    for name in ("residual", "oracle_calls", "bytes_sent"):
        assert told[name] == result.trace[name][-1]


def test_a_run_that_was_cut_short_goes_on_to_the_identical_result():
    call("solve", *QUICK, "--rounds", 80, "--out", "whole", code=1)
    call("solve", *QUICK, "--out", "cut", code=1)
    config = tomllib.loads(Path("cut/run.toml").read_text())
    told = said("solve", "--resume", "cut", "--rounds", 80, code=1)
    assert told["rounds"] == 80
    assert tomllib.loads(Path("cut/run.toml").read_text()) == config | {"rounds": 80}
    cut, whole = runs.load_run("cut"), runs.load_run("whole")
    for name in set(whole.trace.columns) - {"seconds"}:
        assert_array_equal(cut.trace[name], whole.trace[name])
    for name, array in runs.load_arrays("whole").items():
        assert_array_equal(runs.load_arrays("cut")[name], array)

    before = Path("cut/run.toml").read_text()
    wrong = call("solve", "--resume", "cut", "--seed", 5, code=2)
    assert "written by another run, which had other data or split, seed: give" in wrong.stderr
    assert "(--seed was 0 and is 5)" in wrong.stderr
    assert Path("cut/run.toml").read_text() == before


def test_sets_that_do_not_meet_are_named_and_nothing_else_is_advised():
    apart = ["--penalty", "0-1=box:1,2", "--penalty", "2=box:-2,-1", "--nodes", 3, "--no-save"]
    words = ["breast_cancer", *apart, "--method", "pd", "--rounds", 20, "--tol", 1e-6]
    told = " ".join(call("solve", *words, "--no-reference", code=1).stdout.split())
    assert "no point satisfies both penalties, those of nodes 0 and 2 (coordinate 0): l" in told
    assert "--scale" not in told


def test_a_run_without_its_checkpoint_is_not_run_again_in_silence():
    call("solve", *QUICK, "--out", "run", code=1)
    before = Path("run/result.json").read_bytes()
    Path("run/checkpoint.bin").rename("run/checkpoint.npz")  # as it used to be called
    wrong = call("solve", "--resume", "run", "--rounds", 80, code=2)
    assert "run/checkpoint.bin is not there" in wrong.stderr.replace("\n", " ")
    assert "--config run/run.toml" in wrong.stderr.replace("\n", " ")
    assert Path("run/result.json").read_bytes() == before
    Path("run/result.json").unlink()  # killed before it kept anything: it starts from nothing
    assert said("solve", "--resume", "run", code=1)["rounds"] == 40


def test_a_run_may_start_from_another():
    call("solve", *QUICK, "--out", "first", code=1)
    told = said("solve", *QUICK, "--x0", "first", "--duals", "first", "--no-save", code=1)
    X0, duals = (runs.load_arrays("first")[name] for name in ("X", "duals"))
    plain = {"rounds": 40, "record_every": 10, "reference": False}
    both = ew.solve(problem(), ew.Graph.ring(V), "saga-pd", X0=X0, duals=duals, **plain)
    one = ew.solve(problem(), ew.Graph.ring(V), "saga-pd", X0=X0, **plain)
    assert told["residual"] == both.trace["residual"][-1] != one.trace["residual"][-1]


def test_shards_give_what_their_data_give():
    words = [*SAGA, "--ridge", "0.1", "--graph", "ring", "--rounds", "40"]
    words += ["--no-reference", "--no-save"]
    told = said("split", "data.npz", "--nodes", V, "--scale", "--out", "shards")
    assert told["counts"] == [N // V] * V
    whole = said("solve", *QUICK, "--no-save", code=1)["residual"]
    assert said("solve", "--shards", "shards", *words, code=1)["residual"] == whole
    assert said("solve", "shards", *words, code=1)["residual"] == whole
    call("solve", "shards", *words[:-1], "--out", "run", code=1)
    model, x = ew.load_model("run"), runs.load_arrays("run")["x"]  # it takes raw data
    assert_allclose(model.decision_function(X), scale(X) @ x, rtol=1e-10)
    assert "leave --scale" in call("solve", "shards", "--scale", *words, code=2).stderr

    path = Path("shards/node-2.npz")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    wrong = call("solve", "shards", *words, code=2)
    assert "the shard of node 2, shards/node-2.npz, is damaged" in wrong.stderr


def test_what_auto_chose_is_said_and_kept_by_its_name():
    words = [*COMMON, "--tol", "1e-3", "--no-reference"]
    text = call("solve", *words).stdout
    note = "auto: newton-pd, because 3 unknowns fit a 3 x 3 matrix per node"
    assert note in text
    assert "newton-pd: reached tol" in text
    (folder,) = Path("out").glob("newton-pd-*")
    saved = runs.load_run(folder)
    assert saved.config["method"] == saved.result["method"] == "newton-pd"  # for --resume
    assert saved.result["method_note"] == note
    assert note in (folder / "log.txt").read_text()
    told = said("solve", "--resume", folder, "--tol", "1e-8")
    assert told["rounds"] > saved.result["rounds"]


# --- configurations -------------------------------------------------------------------------------


def test_options_win_over_the_file_and_the_file_over_defaults():
    Path("run.toml").write_text(
        'data = "data.npz"\nnodes = 4\nscale = true\ngraph = "ring"\nridge = 0.1\nseed = 7\n'
        'rounds = 20\nrecord-every = 10\nreference = false\npenalty = "l1:1e-3"\neta = 0.05\n'
        'method = "saga-pd"\nset = ["batch=1"]\n'
        "rho = [0.1, 0.1, 0.2, 0.2]\nbudget = 3\n"  # the last is of compare
    )
    call("solve", "--config", "run.toml", "--rounds", 30, "--out", "run", code=1)
    kept = runs.read_config("run")
    expected = {"rounds": 30, "seed": 7, "record_every": 10, "reference": False, "eta": "0.05"}
    expected |= {"penalty": ["l1:1e-3"], "set": ["batch=1"], "rho": "0.1,0.1,0.2,0.2", "alpha": 0.5}
    expected |= {"scale": True, "command": "solve", "version": ew.__version__}
    assert {k: kept[k] for k in expected} == expected
    assert not {"budget", "out", "config", "json"} & set(kept)
    first, again = (runs.load_run("run").result, said("solve", "--config", "run/run.toml", code=1))
    assert again["residual"] == first["residual"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ronds = 5", "did you mean 'rounds'"),
        ("rounds = ", "no TOML file"),
        ("[solve]\nrounds = 5", "unknown option"),
        ("[rounds]\nx = 5", "is a table"),
        (None, "there is no file"),
    ],
)
def test_files_that_are_no_configuration(text, words):
    if text is not None:
        Path("run.toml").write_text(text)
    assert words in call("solve", *QUICK, "--config", "run.toml", code=2).stderr


# --- exit codes and errors ------------------------------------------------------------------------


def test_exit_codes_tell_converged_from_not_and_from_diverged():
    assert said("solve", *QUICK, "--rounds", 4000, "--tol", "1e-6", "--no-save")["converged"]
    short = said("solve", *QUICK, "--no-save", code=1)
    assert short["message"].startswith("ran all 40 rounds")
    assert short["bregman"] is None  # no reference: not a number, which JSON does not have
    wild = call("solve", *QUICK, "--loss", "logistic", "--ridge", 50, "--eta", 9, code=1)
    assert "diverged by round" in wild.stdout
    assert "--eta 9 was given" in wild.stdout
    assert "Warning" not in wild.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solve", "brest_cancer"], "did you mean 'breast_cancer'"),
        (["solve", "gone.csv"], "gone.csv"),
        (["solve", *QUICK, "--method", "saga"], "unknown method 'saga'"),
        (["solve", *QUICK, "--method", "extra", "--penalty", "l1:1"], "cannot handle a penalty"),
        (["solve", *COMMON, "--set", "batch=2"], "that auto is yet to choose: name one"),
        (["solve", *QUICK, "--penalty", "l3:1"], "unknown penalty 'l3'"),
        (["solve", *QUICK, "--loss", "squared"], "needs numbers as labels"),
        (["solve", *QUICK, "--eta", "big"], "step 'big' cannot be read"),
        (["solve", *QUICK, "--wipe", "3"], "--wipe '3' cannot be read: give NODE:ROUND"),
        (["solve", *QUICK, "--wipe", "9:1"], "there is no node 9"),
        (["solve", *QUICK, "--rounds", "0"], "rounds is 0"),
        (["solve", *QUICK, "--dtype", "int8"], "use 'float32' or 'float64'"),
        (["solve", *QUICK, "--devices", "99"], "devices=99, but JAX has 1"),
        (["solve", *QUICK, "--how", "luck"], "unknown split 'luck'"),
        (["solve", *QUICK, "--x0", "nowhere"], "nowhere has no model"),
        (["solve", *QUICK, "--shards", "b"], "both data (data.npz) and shards (b) are given"),
        (["solve", *QUICK, "--sample-weight", "w"], "w"),
        (["solve", "--resume", "."], "is no run, it has no run.toml"),
        (["network", "init", "--nodes", "3", "--dual-noise", "-1"], "--dual-noise is -1.0"),
        (["compare", *COMMON, "--per", "miles"], "unknown unit of a budget 'miles'"),
        (["tune", *COMMON, "--factors", "a,b"], "--factors 'a,b' cannot be read"),
        (["split"], "no data: give a file or a name"),
        (["report"], "name their folders"),
        (["report", "a"], "a is no run"),
    ],
)
def test_errors_are_one_paragraph_and_leave_nothing_behind(words, message):
    done = call(*words, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert not list(Path("out").glob("*"))


def test_usage_errors_are_of_the_same_code():
    assert "no-such-option" in call("solve", "--no-such-option", code=2).stderr
    assert "nodes" in call("solve", "data.npz", "--nodes", "many", code=2).stderr


def test_debug_shows_where_and_faults_of_ours_have_their_own_code(monkeypatch):
    assert "Traceback" in call("solve", "brest_cancer", "--debug", code=2).stderr
    monkeypatch.setattr("edgewise.cli.solve.make_inputs", lambda *_: 1 / 0)
    done = call("solve", code=70)
    assert "fault of Edgewise" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupts_end_in_order_and_can_be_resumed(monkeypatch):
    record = Run.record

    def pressed(run, callback=None):
        if run.round == 20:
            signal.raise_signal(signal.SIGINT)
        return record(run, callback)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "record", pressed)
        done = call("solve", *QUICK, "--out", "run", code=130)
    assert "interrupted after 20 rounds" in done.stdout
    assert said("solve", "--resume", "run", code=1)["rounds"] == 40

    def at_once(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("edgewise.cli.solve.make_inputs", at_once)
    assert call("solve", code=130).stderr == "interrupted\n"


def test_a_folder_is_not_written_over():
    call("solve", *QUICK, "--out", "run", code=1)
    assert "holds a run already" in call("solve", *QUICK, "--out", "run", code=2).stderr
    one, two = (runs.new_folder(None, "a") for _ in range(2))
    assert one != two


# --- compare, tune, report ------------------------------------------------------------------------


def test_compare_is_the_api():
    words = ["--methods", "saga-pd,extra", "--penalty", "l1:1e-3", "--budget", "300"]
    words += ["--seeds", "2", "--no-tune", "--accuracies", "1e-1,1e-2", "--out", "run"]
    told = said("compare", *COMMON, *words)
    found = ew.compare(
        problem(ew.L1(1e-3)),
        ew.Graph.ring(V),
        ["saga-pd"],
        300,
        tune=False,
        accuracies=[1e-1, 1e-2],
        seeds=2,
        show=False,
    )
    row = next(r for r in told["costs"] if (r["accuracy"], r["unit"]) == (1e-2, "oracle_calls"))
    cost = found.cost("saga-pd", 1e-2)
    assert [row["lower"], row["median"], row["upper"]] == cost.tolist()
    assert told["best"] == {"0.1": "saga-pd", "0.01": "saga-pd"}
    assert "cannot handle a penalty" in told["refused"]["extra"]
    assert json.loads(Path("run/result.json").read_text()) == told
    short = [*words[:-2], "--budget", "14", "--no-save"]
    call("compare", *COMMON, *short, "--methods", "saga-pd", code=1)


def test_compare_and_tune_take_faults():
    words = ["--budget", 20, "--per", "rounds", "--drop", "0.3", "--fault-seed", 4]
    given = {"budget": 20, "per": "rounds", "faults": ew.Faults(drop=0.3, seed=4)}
    of_it = ["--methods", "pd,extra", "--no-tune", "--seeds", 1, "--accuracies", "0.5"]
    told = said("compare", *COMMON, *words, *of_it, "--out", "run")
    alike = {"tune": False, "seeds": 1, "accuracies": [0.5], "show": False}
    found = ew.compare(problem(), ew.Graph.ring(V), ["pd", "extra"], **given, **alike)
    assert told["ended"] == {m: found.ended(m)[1] for m in ("pd", "extra")}
    assert list(told["harmed"]) == ["extra"]
    told = said("tune", *COMMON, "--method", "pd", *words, "--factors", "1", "--out", "tuned")
    tuned = ew.tune(problem(), ew.Graph.ring(V), "pd", factors=[1], **given)
    assert told["message"] == tuned.message
    best = tomllib.loads(Path("tuned/best.toml").read_text())
    assert (best["drop"], best["fault_seed"]) == (0.3, 4)  # the solve meets the same


def test_tuned_steps_are_a_configuration_for_solve():
    told = said("tune", *COMMON, *SAGA, "--budget", 200, "--factors", "0.5,1,2", "--out", "tuned")
    tuned = ew.tune(problem(), ew.Graph.ring(V), "saga-pd", budget=200, factors=[0.5, 1, 2])
    assert told["factors"] == tuned.factors
    assert told["cells"] == len(tuned.surface["cost"])
    words = ["--config", "tuned/best.toml", "--rounds", 40, "--no-reference", "--no-save"]
    result = ew.solve(problem(), ew.Graph.ring(V), tuned.method, rounds=40, reference=False)
    assert said("solve", *words, code=1)["residual"] == result.trace["residual"][-1]
    table = np.genfromtxt("tuned/surface.csv", delimiter=",", names=True)
    assert_array_equal(table["divergence"], tuned.surface["divergence"])


def test_steps_that_solve_has_no_option_for_are_settings():
    steps = {"mu": np.full(3, 0.5), "eta": np.array([0.1, 0.2])}
    found = best({"command": "tune", "set": ["batch=2"]}, steps)
    assert found == {"command": "solve", "eta": "0.1,0.2", "set": ["batch=2", "mu=0.5"]}


def test_report_has_a_row_per_run():
    call("solve", *QUICK, "--out", "one", code=1)
    call("solve", *QUICK, "--seed", 1, "--out", "two", code=1)
    Path("two/result.json").unlink()  # as if it had been killed
    told = said("report", "one", "two", "--y", "consensus", "--out", "plots/both.png")
    one, two = told["runs"]
    assert one["residual"] == runs.load_run("one").result["residual"]
    assert (one["method"], one["converged"]) == ("saga-pd", False)
    assert (two["method"], two["converged"]) == ("saga-pd", None)
    assert Path("plots/both.png").exists()
    assert "unfinished" in call("report", "one", "two", "--out", "both.svg").stdout
    assert "unknown trace column" in call("report", "one", "--x", "miles", code=2).stderr
    assert "ends in .html, .png" in call("report", "one", "--out", "both.gif", code=2).stderr


@pytest.mark.parametrize("width", [40, 80, 120])
def test_reports_break_no_header_and_show_seconds(width):
    call("solve", *QUICK, "--out", "a-folder-with-a-rather-long-name", code=1)
    saved = runs.load_run("a-folder-with-a-rather-long-name")
    console = Console(width=width, file=io.StringIO())
    console.print(table_of([saved], [summarise(saved)], console))
    text = console.file.getvalue()
    seconds = number_text("seconds", saved.result["seconds"])
    for word in ("converged", "rounds", "oracle", "calls", "bytes", "seconds", "residual", seconds):
        assert word in text
    assert max(map(len, text.splitlines())) <= width


def page_of(path):
    """What the page's script is given."""
    page = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])


def test_report_is_a_page_with_a_panel_per_setting():
    pytest.importorskip("plotly")
    call("solve", *QUICK, "--out", "one", code=1)
    call("solve", *QUICK, "--eta", "0.1", "--out", "two", code=1)
    call("solve", *QUICK, "--method", "nids", "--drop", "0.1", "--out", "three", code=1)
    told = said("report", "one", "two", "three")
    assert told["page"] == str(Path("out/report.html"))
    data = page_of("out/report.html")
    assert data["methods"] == ["saga-pd", "saga-pd, eta 0.1", "nids"]
    assert data["settings"] == ["no drop", "drop 0.1"]
    assert (data["x"], data["y"]) == ("rounds", "residual")
    assert data["ys"] == ["residual", "consensus"]  # there was no reference
    one = runs.load_run("one")
    assert data["runs"][0]["last"]["residual"] == pytest.approx(one.result["residual"], 1e-9)
    assert [run["parameters"] for run in data["runs"]] == ["", "eta 0.1", ""]
    about = dict(data["about"])
    assert {k: about[k] for k in ("edgewise", "nodes", "graph", "ridge", "scale")} == {
        "edgewise": ew.__version__,
        "nodes": str(V),
        "graph": "ring",
        "ridge": "0.1",
        "scale": "yes",
    }
    assert about["data"] == "data.npz"  # and not where it lies
    assert data["network"]["links"] == ew.Graph.ring(V).edges.tolist()

    call("solve", *QUICK, "--graph", "star", "--out", "four", code=1)
    call("report", "one", "four", "--y", "consensus", "--out", "other.html")
    data = page_of("other.html")
    assert (data["settings"], data["network"]) == (["graph ring", "graph star"], None)
    Path("one/result.json").unlink()
    assert "none of the runs has ended" in call("report", "one", code=2).stderr


def test_report_takes_traces_too():
    pytest.importorskip("plotly")
    call("solve", *QUICK, "--out", "one", code=1)
    call("solve", *QUICK, "--seed", 1, "--out", "two", code=1)
    told = said("report", "one/trace.npz", "two/trace.csv", "two", "--out", "all.html")
    names = ["PrimalDual-SAGA", "two/trace", "saga-pd"]  # as a trace knows it, as a run does
    assert [run["method"] for run in told["runs"]] == names
    assert told["runs"][1]["residual"] == told["runs"][2]["residual"]
    data = page_of("all.html")
    assert data["methods"] == names
    assert data["runs"][1]["columns"]["residual"] == data["runs"][2]["columns"]["residual"]
    assert data["network"] is None
    call("report", "one/trace.npz", "two/trace.npz", "--out", "both.html")
    own = [f"PrimalDual-SAGA ({Path(run, 'trace.npz')})" for run in ("one", "two")]
    assert page_of("both.html")["methods"] == own
    call("report", "one/trace.npz", "two/trace.csv", "--out", "all.pdf")
    assert Path("all.pdf").read_bytes().startswith(b"%PDF")
    assert "no trace gone.npz" in call("report", "gone.npz", code=2).stderr
    assert "data.npz is no trace" in call("report", "data.npz", code=2).stderr
    Path("words.csv").write_text("a,b\n1,2\n")
    assert "words.csv is no trace" in call("report", "words.csv", code=2).stderr


# --- methods, doctor, help ------------------------------------------------------------------------


def test_methods_agree_with_their_index():
    told = said("methods")
    assert list(told) == list(ew.list_methods())
    index = (ROOT / "docs" / "methods" / "README.md").read_text()
    for name, row in told.items():
        line = next(x for x in index.splitlines() if x.startswith(f"| `{name}` |"))
        *_, vectors, penalty, exact = (cell.strip() for cell in line.strip("|").split("|"))
        assert (row["exact"] == "no") == exact.startswith("no"), name
        if penalty in ("yes", "no"):  # baselines have these columns
            assert row["penalty"] == (penalty == "yes"), name
            assert str(row["vectors_a_round"]) == vectors[0], name
            assert (row["rounds_a_step"] == 1) == (len(vectors) == 1), name
    assert told["pdmm"]["heals"]
    assert not told["d-admm"]["heals"]
    assert "auto, the default: newton-pd up to 1,000 unknowns" in call("methods").stdout


def test_doctor_says_what_there_is(monkeypatch):
    told = said("doctor")
    for package in ("jax", "numpy", "typer", "scikit-learn"):
        assert told["packages"][package] == version(package)
    assert told["precision"] == "float64"
    assert told["extras"]["report"] == {"missing": []}
    monkeypatch.setattr("edgewise.cli.doctor.version", lambda p: None if p == "plotly" else "1")
    assert said("doctor")["extras"]["report"] == {"missing": ["plotly"]}
    assert "pip install plotly" in call("doctor").stdout


def test_doctor_leaves_out_extras_that_stand_for_others(monkeypatch):
    needed = ["numpy>=2.0", "numba>=0.65; extra == 'fast'", "edgewise[fast]; extra == 'native'"]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needed)
    monkeypatch.setattr("edgewise.cli.doctor.version", lambda p: None if p == "numba" else "1")
    assert said("doctor")["extras"] == {"fast": {"missing": ["numba"]}}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("solve", SolveOptions),
        ("compare", CompareOptions),
        ("tune", TuneOptions),
        ("split", SplitOptions),
        ("report", ReportOptions),
        ("reproduce", ReproduceOptions),
        ("methods", ListOptions),
        ("doctor", ListOptions),
    ],
)
def test_help_has_every_option_and_the_exit_codes(command, options):
    text = call(command, "--help").stdout
    for field in fields(options):
        if field.name not in ("data", "runs", "experiments"):
            assert f"--{field.name.replace('_', '-')}" in text, field.name
    assert f"$ edgewise {command}" in text
    assert "130 interrupted" in text


def test_every_option_of_the_api_has_its_own():
    def given(api):
        return set(inspect.signature(api).parameters)

    def options(kind):
        return {f.name for f in fields(kind)}

    objects = {"problem", "graph", "show", "between"}  # between: matrices by edge, in Python only
    in_parts = {"X0", "faults", "callback", "privacy"}
    assert given(ew.solve) - objects - in_parts <= options(SolveOptions)
    assert {f"dp_{f.name}" for f in fields(ew.DP)} - {"dp_noise_seed"} <= options(SolveOptions)
    for kind in (SolveOptions, CompareOptions, TuneOptions):
        # links: of a TimeVarying graph, in Python only
        assert {f.name for f in fields(ew.Faults)} - {"seed", "links"} <= options(kind)
    assert given(ew.compare) - objects - {"reference", "faults"} <= options(CompareOptions)
    assert given(ew.tune) - objects - {"reference", "faults"} <= options(TuneOptions)
    of_files = {"columns", "lines"}  # which a file knows itself
    assert given(ew.split) - {"X", "y"} - of_files <= options(SplitOptions)
    for kind in (SolveOptions, CompareOptions, TuneOptions):
        assert given(ew.Problem) - {"classes", "cost"} <= options(kind)  # samples show classes
    made = {"ring", "path", "star", "complete", "grid", "torus", "random", "small-world"}
    assert set(spec.GRAPHS) == made | {"circulant"}
    assert len(spec.PENALTIES) == 11
    assert len({f.name for kind in COMMANDS for f in fields(kind)}) > 60


def test_the_page_on_it_gives_commands_and_options_that_there_are():
    page = (ROOT / "docs" / "cli.md").read_text()
    blocks = re.findall(r"^```(sh|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines]
    assert {words[0] for words in commands} > {"solve", "compare", "tune", "split", "report"}
    for command, *words in commands:
        if not command.startswith("--"):
            call(command, "--help", *words)  # refuses options that there are not
    config = next(block for kind, block in blocks if kind == "toml")
    Path("run.toml").write_text(config)
    words = ["--config", "run.toml", "--rounds", 10, "--no-reference", "--no-save"]
    assert said("solve", *words, code=1)["nodes"] == tomllib.loads(config)["nodes"]
    for name in ("run.toml", "result.json", "trace.csv", "model.npz", "model.json", "log.txt"):
        assert f"`{name}`" in page


def test_names_are_completed():
    def complete(words):
        env = {"_EDGEWISE_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(len(words.split(" ")) - 1)
        return CliRunner().invoke(app, [], prog_name="edgewise", env=env).stdout.split()

    assert complete("edgewise so") == ["solve"]
    assert complete("edgewise solve --method saga") == ["saga-pd"]
    assert complete("edgewise solve da") == ["data.npz"]
    assert complete("edgewise solve --graph to") == ["torus"]


def test_the_library_needs_no_typer_and_the_module_runs():
    code = "import sys, edgewise; assert 'typer' not in sys.modules; import runpy; "
    code += "sys.argv = ['edgewise', '--version']; runpy.run_module('edgewise', alter_sys=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"edgewise {ew.__version__}\n"), done.stderr


# --- what is typed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"graph": "grid"}, ew.Graph.grid(3, 4)),
        ({"graph": "torus", "rows": 2}, ew.Graph.torus(2, 6)),
        ({"graph": "grid", "cols": 2}, ew.Graph.grid(6, 2)),
        ({"graph": "star"}, ew.Graph.star(12)),
        ({"graph": "path"}, ew.Graph.path(12)),
        ({"graph": "complete"}, ew.Graph.complete(12)),
        ({"graph": "random"}, ew.Graph.random(12, 30, seed=5)),
        ({"graph": "random", "edges": 15, "graph_seed": 2}, ew.Graph.random(12, 15, seed=2)),
        ({"graph": "small-world", "rewire": 0.5}, ew.Graph.small_world(12, 4, 0.5, seed=5)),
        ({"graph": "edges.txt"}, ew.Graph.ring(12)),
    ],
)
def test_graphs(options, expected):
    Path("edges.txt").write_text("".join(f"{(i + 1) % 12} {i}\n" for i in range(12)))
    found = make_graph(SolveOptions(**options, seed=5), 12)
    assert_array_equal(found.edges, expected.edges)
    assert found.nodes == 12


def test_graphs_that_are_none():
    Path("edges.txt").write_text("a b\n")
    with pytest.raises(GraphError, match="two node numbers a line"):
        make_graph(SolveOptions(graph="edges.txt"), 12)
    Path("edges.txt").write_text("0 1\n2 1\n")
    with pytest.raises(
        GraphError, match="has 3 nodes and the data are split over 12: give --nodes 3"
    ):
        make_graph(SolveOptions(graph="edges.txt"), 12)
    with pytest.raises(UnknownName, match="did you mean 'ring'"):
        make_graph(SolveOptions(graph="rng"), 12)


def test_faults():
    assert make_faults(SolveOptions(fault_seed=3)) is None
    given = SolveOptions(
        delay=2, patience=3, down=["0:1:3:9"], leave=["1:4"], join=["1:8", "2:3"], nap=2.0
    )
    expected = ew.Faults(
        delay=2, patience=3, down=(0, 1, 3, 9), leave=(1, 4), join=[(1, 8), (2, 3)], nap=2.0
    )
    assert repr(make_faults(given)) == repr(expected)
    lying = make_faults(SolveOptions(liars="0.2:large:50", fault_seed=3)).liars
    assert repr(lying) == repr(ew.Liars(0.2, "large", 50.0, seed=3))
    with pytest.raises(InputError, match="give SHARE:ATTACK"):
        make_faults(SolveOptions(liars="some"))
    assert make_faults(SolveOptions(bits=4, feedback=False)).feedback is False


# --- models ---------------------------------------------------------------------------------------


def loaded(problem, x, place):
    FittedModel.of(ModelForm.of(problem), x, {}).save(place)
    return ew.load_model(place)


@pytest.mark.parametrize("intercept", [False, True])
def test_models_of_several_classes(place, intercept):
    y = RNG.integers(0, 3, N)
    many = ew.Problem(ew.split(X, y, nodes=V), ew.Multinomial(), intercept=intercept)
    x = RNG.standard_normal(many.size)
    margins = np.stack(
        [X @ x[P * c : P * (c + 1)] + (x[9 + c] if intercept else 0) for c in (0, 1, 2)]
    )
    model = loaded(many, x, place)
    assert_allclose(model.decision_function(X), margins.T, rtol=1e-12)
    assert_array_equal(model.predict(X), margins.argmax(0))

    two = ew.Problem(ew.split(X, Y, nodes=V), ew.Multinomial(), intercept=intercept)
    x = RNG.standard_normal(two.size)
    odds = [np.exp(X @ x[P * c : P * (c + 1)] + (x[6 + c] if intercept else 0)) for c in (0, 1)]
    assert_allclose(loaded(two, x, place).predict_proba(X)[:, 1], odds[1] / sum(odds), rtol=1e-9)


def test_models_of_numbers_and_of_hinges(place):
    numbers = ew.Problem(ew.split(X, X[:, 0], nodes=V), ew.Huber(), intercept=True)
    x = RNG.standard_normal(4)
    assert_allclose(loaded(numbers, x, place).predict(X), X @ x[:3] + x[3], rtol=1e-12)
    hinge = ew.Problem(ew.split(X, Y, nodes=V), ew.SmoothedHinge())
    expected = np.where(X @ x[:3] > 0, "well", "sick")
    assert_array_equal(loaded(hinge, x[:3], place).predict(X), expected)


def test_sparse_data_are_scaled_without_a_centre(place):
    D = np.where(RNG.random((N, P)) < 0.3, RNG.standard_normal((N, P)), 0)
    scaled, scaling = preprocess(sp.csr_array(D), SolveOptions(scale=True, normalize=True))
    assert_allclose(scaled.toarray(), normalize(D / D.std(0)), rtol=1e-12)
    shards = replace(ew.split(scaled, Y, nodes=V), scaling=scaling)
    hinge = ew.Problem(shards, ew.SmoothedHinge(), intercept=True)
    x = np.array([1.0, -2.0, 0.5, 0.3])
    margin = normalize(D / D.std(0)) @ x[:3] + x[3]
    model = loaded(hinge, x, place)
    for each in (model, model.to_sklearn()):
        assert_allclose(each.decision_function(sp.csr_array(D)), margin, rtol=1e-12)


def test_what_is_no_model(place):
    with pytest.raises(InputError, match="there is no model"):
        ew.load_model(place)
    (place / "model.json").write_text('{"estimator": "Oracle"}')
    with pytest.raises(InputError, match="is no model"):
        ew.load_model(place)


def test_report_leaves_out_what_is_no_run():
    call("solve", *QUICK, "--out", "out/one", code=1)
    Path("out/notes.html").write_text("not a run")
    Path("out/empty").mkdir()
    done = call("report", "out/one", "out/notes.html", "out/empty", "--out", "runs.png")
    assert "left out: out/notes.html, out/empty" in done.stdout
    assert "is no run" in call("report", "out/empty", code=2).stderr


def test_uneven_columns_get_a_hint_and_a_file_is_no_folder():
    rough = [w for w in QUICK if w != "--scale"]
    assert "--standardize" in call("solve", *rough, "--no-save", code=1).stdout
    assert "--standardize" not in call("solve", *QUICK, "--no-save", code=1).stdout
    assert "is a file" in call("solve", *QUICK, "--out", "data.npz", code=2).stderr


@pytest.mark.parametrize(
    ("python", "here"),
    [
        (
            'take method="auto", or give rows one length',
            "--method auto, or give rows one length (--n",
        ),
        ("about 20 more would do, rounds=120", "would do, --rounds 120"),
        ("would do, oracle_budget=3200", "would do, --oracle-budget 3200"),
        ("add edges, as Graph.random(60, 180) has", "as --graph random --edges 180"),
        (
            'eta=2 was given, ...: leave it out (eta="auto")',
            "--eta 2 was given, ...: leave it out (-",
        ),
        ('take dtype="float64"', "take --dtype float64"),
        ("ask for a tol of 7e-12", "ask for --tol 7e-12"),
        ("a ridge, as Logistic(ridge=1e-3), or", "a ridge, as --ridge 1e-3, or"),
        ("or give a ridge, as ridge=1e-2", "as --ridge 1e-2"),
        ("the columns (ew.standardize)", "the columns (--standardize)"),
        ("optimum: set feedback=True", "set --feedback"),
    ],
)
def test_a_run_speaks_of_options(python, here):
    assert here in as_options(python)
    words = re.findall(r"--[a-z]+(?:-[a-z]+)*", as_options(python))
    page = call("solve", "--help").stdout
    assert all(word in page for word in words)
