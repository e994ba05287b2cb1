"""edgewise predict"""

import csv
import io
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edgewise as ew
from edgewise.cli.options import PredictOptions
from edgewise.cli.shell import print_json
from edgewise.data.arrays import missing_labels
from edgewise.data.cells import label_column, read_labels
from edgewise.data.loading import kind_of_file, read_samples
from edgewise.data.row_terms import TermColumns
from edgewise.errors import DataError, InputError
from edgewise.fileio import write_text
from edgewise.running.goodness import score_kind
from edgewise.running.model_form import counted

log = logging.getLogger("edgewise")


class Rows(NamedTuple):
    """What is to be predicted."""

    X: Any  # numbers, or a table
    names: Sequence[str] | None
    y: np.ndarray | None
    offset: np.ndarray | None = None


def predict(o: PredictOptions) -> None:
    if o.model is None or o.data is None:
        raise InputError(
            "give a model and data: edgewise predict out/newton-pd-20300101-120000 data.csv"
        )
    model = ew.load_model(o.model)
    if o.probabilities:
        model.require_chances()
    rows = read_rows(model, o)
    z = model.margins(model.matrix(rows.X, rows.names))
    z = z if rows.offset is None else z + (rows.offset if z.ndim == 1 else rows.offset[:, None])
    predicted = model.decided(z)
    chances = model.chances(z) if o.probabilities else None
    score, labelled = None, np.zeros(0, int)
    if rows.y is not None:
        labelled = np.flatnonzero(~missing_labels(rows.y))
    if rows.y is not None and len(labelled):
        y, offset = as_labels(rows.y[labelled], predicted[labelled]), rows.offset
        score = model.scored(z[labelled], y, None if offset is None else offset[labelled])
    if not model.converged:
        said = model.provenance.get("message") or "it does not say how it ended"
        log.warning("the model is of a run that has not converged (%s)", said)
    if model.classes is not None:
        predicted = as_in_files(predicted, model.classes)
    text = as_csv(model, predicted, chances)
    if o.output is not None:
        write_text(Path(o.output), text)
    kind = score_kind(model.family, model.classes)
    if o.json:
        summary: dict[str, Any] = {
            "command": "predict",
            "rows": len(predicted),
            "labelled": len(labelled),
            "converged": model.converged,
            "output": o.output,
        }
        if score is not None:
            summary |= {"score_kind": kind, "score": score}
        if o.output is None:
            summary["predictions"] = predicted
            summary |= {} if chances is None else {"probabilities": chances}
        print_json(summary)
        return
    if o.output is None:
        sys.stdout.write(text)
    if score is not None:
        print(f"{kind} {score:.4g} on {len(labelled)} labelled rows", file=sys.stderr)


def as_csv(model: ew.FittedModel, predicted: np.ndarray, chances: np.ndarray | None) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if chances is None:
        writer.writerows([["prediction"], *([p] for p in predicted.tolist())])
    else:
        assert model.classes is not None
        classes = as_in_files(model.classes, model.classes)
        names = [f"probability of {name}" for name in classes.tolist()]
        writer.writerow(["prediction", *names])
        pairs = zip(predicted.tolist(), chances.tolist(), strict=True)
        writer.writerows([p, *each] for p, each in pairs)
    return file.getvalue()


def as_in_files(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """0 and 1 where a file of labels has these, and not 0.0 and 1.0."""
    whole = classes.dtype.kind == "f" and bool((classes % 1 == 0).all())
    return labels.astype(np.int64) if whole else labels


def as_labels(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Labels of a file as what they are held against."""
    text, words = y.dtype.kind in "US", predicted.dtype.kind in "US"
    if text == words:
        return y
    if words:
        return y.astype(str)
    try:
        if predicted.dtype == bool and set(y) <= {"True", "False"}:
            return y == "True"
        return y.astype(np.float64)
    except ValueError:
        raise DataError(
            f"the labels are text, as {y[0]!r}, and the model predicts numbers: say which column "
            "holds the labels with --label"
        ) from None


# --- reading --------------------------------------------------------------------------------------


def read_rows(model: ew.FittedModel, o: PredictOptions) -> Rows:
    if not Path(o.data or "").is_file() and o.data in ew.data.names():
        X, y = ew.data.dataset(str(o.data))
        return Rows(X, None, y)
    path = Path(o.data or "")
    kind = kind_of_file(path)
    if kind == "table":
        return read_rows_of_table(path, model, o)
    if o.label is not None:
        raise InputError(f"{path} is {kind}, --label {o.label} is of tables: leave it out")
    samples = read_samples(path, model.features if kind == "libsvm" else None, labelled=False)
    return Rows(samples.X, samples.columns, samples.y, samples.terms.offset)


def read_rows_of_table(path: Path, model: ew.FittedModel, o: PredictOptions) -> Rows:
    """With or without labels: those are a column that is named, or that the model knows by name,
    or the last one of a file without names that has one more."""
    label = o.label
    known = () if model.preparation is None else model.preparation.columns
    named = [*(o.ignore or ()), *([] if label in (None, "first", "last") else [str(label)])]
    how = {"separator": o.separator, "decimal": o.decimal, "encoding": o.encoding}
    na = () if model.preparation is None else model.preparation.na
    terms = TermColumns() if model.preparation is None else model.preparation.terms
    named += terms.names
    table = ew.data.read_table(path, **how, header=o.header, names=named, na=na)
    trials = None if model.preparation is None else model.preparation.trials
    terms = terms._replace(trials=trials if trials in table.columns else None)
    table, of_rows = terms.taken_from(table)
    offset = of_rows.offset
    for name in o.ignore or ():
        table = table.drop(columns=label_column(table, name))
    names = list(table.columns)
    expected = known or model.columns
    unnamed = counted(names)
    if label is None and not unnamed and model.label in names:
        label = model.label
    elif label is None and unnamed and len(names) == (len(known) or model.features) + 1:
        label = model.label if model.label in names else "last"
    elif label is None and not unnamed and expected is not None:
        extra = [name for name in names if name not in expected]
        if len(extra) == 1 and len(names) == len(expected) + 1:
            raise DataError(
                f'{path} has a column "{extra[0]}", which the model does not know: give --label '
                f"{shlex.quote(extra[0])} if it holds the labels, or --ignore it"
            )
    y = None
    if label is not None:
        target = label_column(table, label)
        y, table = of_rows.rates(read_labels(table, target)), table.drop(columns=target)
        if trials is not None and terms.trials is None:
            raise DataError(
                f'{path} has labels and no column "{trials}": give it, or leave the labels out'
            )
    made = model.preparation
    changed = made is not None and (made.levels or made.fills or made.indicated)
    if unnamed and changed and not {*known} <= {*table.columns}:
        raise DataError(
            f"{path} has no header, so which column is which cannot be told: give it one, with "
            f"{', '.join(known)}"
        )
    if unnamed and not (model.preparation is not None and model.preparation.levels):
        return Rows(table.to_numpy(), None, y, offset)
    return Rows(table, None, y, offset)
