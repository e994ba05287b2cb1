"""What is on a picture: asked of the figure that was saved, not of its pixels."""

from pathlib import Path

import numpy as np


def keep_figures(monkeypatch):
    """{file name: figure} of every picture that is saved from now on."""
    from matplotlib.figure import Figure

    figures, save = {}, Figure.savefig

    def savefig(figure, path, **options):
        save(figure, path, **options)
        assert Path(path).stat().st_size > 0
        figures[Path(path).name] = figure

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


def lines(ax):
    """{label: (x, y)} of its lines."""
    return {str(line.get_label()): np.asarray(line.get_data(), float) for line in ax.lines}


def bars(ax):
    """{label: heights} of its groups of bars."""
    return {c.get_label(): [bar.get_height() for bar in c] for c in ax.containers}


def legend(of):
    """What the legend of an axis or a figure says."""
    shown = of.legends[0] if hasattr(of, "legends") else of.get_legend()
    return [text.get_text() for text in shown.get_texts()]
