"""Formulas, as of R and formulaic, over tables that nodes hold: levels of categories are those of
all nodes, whoever lacks some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.data import frames
from edgewise.data.shards import Shards
from edgewise.errors import DataError, InputError
from edgewise.graph.from_text import graph_of
from edgewise.graph.graph import Graph
from edgewise.problem.survival_labels import survival_labels

INTERCEPT = "Intercept"
Levels = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Design:
    """What a formula makes of a table, by levels that are fixed: `edgewise.formula` agrees on them,
    and `Design("y ~ age + C(stage)", {"C(stage)": ("I", "II", "III")})` takes those that are known
    ahead, so that nobody tells any."""

    formula: str
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rounds: int = 0  # of messages that it took to agree on them

    def apply(self, table: Any) -> Any:
        """The features, a pandas frame with a column for each coefficient but the intercept."""
        return self._matrix(table).drop(columns=INTERCEPT, errors="ignore")

    def response(self, table: Any) -> np.ndarray:
        """(N,) the left side: a column as it is, or what an expression comes to."""
        left = sides(self.formula)[0]
        table = frames.as_pandas(table)
        if left is None:
            raise DataError(f"{self.formula!r} has no left side: write y ~ ...")
        if str(left) in table.columns:
            return np.asarray(table[str(left)])
        made = evaluated(left, table)
        columns = [name for name in made.columns if name != INTERCEPT]
        if len(columns) != 1:
            raise DataError(f"the left side of {self.formula!r} makes {len(columns)} columns: one")
        return np.asarray(made[columns[0]], np.float64)

    @property
    def intercept(self) -> bool:
        """Whether there is one: `Problem(..., intercept=design.intercept)`."""
        return any(str(term) == "1" for term in sides(self.formula)[1])

    def terms(self, table: Any) -> dict[str, list[str]]:
        """The columns of each term, for `wald_test` of all of its levels together."""
        spec = self._matrix(table).model_spec
        made = {str(term): list(spec.column_names[at]) for term, at in spec.term_slices.items()}
        return {name: columns for name, columns in made.items() if name != "1"}

    def _matrix(self, table: Any) -> Any:
        table = frames.as_pandas(table)
        right = sides(self.formula)[1]
        spec = evaluated(right, table).model_spec
        state = dict(spec.encoder_state)
        for name, own in levels_in(spec).items():
            known = self.levels.get(name)
            if known is None:
                raise DataError(f"{name} is a category here, and has no levels in this design")
            if unknown := [level for level in own if level not in known]:
                told = ", ".join(map(str, known))
                raise DataError(f"{name} has a level {unknown[0]!r}, which is none of {told}")
            kind, _ = state[name]
            state[name] = (kind, {"categories": list(known)})
        if wrong := [name for name in self.levels if name not in levels_in(spec)]:
            raise DataError(
                f"{wrong[0]} are numbers here and categories elsewhere: write C({wrong[0]}), or "
                "make the column one of texts everywhere"
            )
        fixed = spec.update(encoder_state=state, structure=None)
        return fixed.get_model_matrix(table, context=context())


def formula(
    text: str,
    tables: Sequence[Any],
    graph: Graph | str | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Shards, Design]:
    """Shards of tables, one per node, by a formula, and the `Design` that made them.

    A level of a category that any node has becomes a column at all. Over a `graph` nodes agree on
    them as they would apart: each tells its neighbours the levels that it has heard of, until
    nobody hears of a new one. Functions of a column that look at all of it, such as center and bs,
    are refused: they would take one node's data for all.

    text    as "died ~ age + C(stage) + age:sex"; np and survival_labels may be used in it
    tables  a table per node, pandas' or one that becomes it
    levels  of categories, by factor, where they are known ahead: nobody tells any then

    >>> import pandas as pd
    >>> north = pd.DataFrame({"y": [1.0, 2.0], "stage": ["I", "II"]})
    >>> south = pd.DataFrame({"y": [3.0, 5.0], "stage": ["III", "I"]})
    >>> shards, design = edgewise.formula("y ~ C(stage)", [north, south], "path")
    >>> shards.columns
    ('C(stage)[T.II]', 'C(stage)[T.III]')
    >>> design.levels
    {'C(stage)': ('I', 'II', 'III')}
    """
    if frames.is_frame(tables) or not isinstance(tables, Sequence) or not tables:
        raise DataError("give a list with one table per node")
    read = [frames.as_pandas(table) for table in tables]
    right = sides(text)[1]
    rounds = 0
    if levels is None:
        own = [at_node(node, right, table) for node, table in enumerate(read)]
        require_one_kind(own)
        agreed, rounds = flooded(graph, own)
    else:
        agreed = {name: tuple(given) for name, given in levels.items()}
    design = Design(text, agreed, rounds)
    parts = []
    for node, table in enumerate(read):
        try:
            parts.append((design.apply(table), design.response(table)))
        except DataError as wrong:
            raise DataError(f"node {node}: {wrong}") from None
    return Shards.from_parts(parts), design


def at_node(node: int, right: Any, table: Any) -> Levels:
    try:
        return levels_in(evaluated(right, table).model_spec)
    except DataError as wrong:
        raise DataError(f"node {node}: {wrong}") from None


def evaluated(side: Any, table: Any) -> Any:
    """A side's model matrix, by what this table alone knows."""
    try:
        made = side.get_model_matrix(table, context=context(), na_action="raise")
    except Exception as wrong:  # formulaic's own, and whatever functions in a formula raise
        raise DataError(
            f"the formula cannot be made of this table ({str(wrong).splitlines()[0]}): columns are "
            f"{', '.join(map(str, table.columns))}; leave rows with missing cells out first"
        ) from wrong
    if state := made.model_spec.transform_state:
        raise DataError(
            f"{next(iter(state))} looks at the whole column, of which a node has a part: take a "
            "function of single cells (np.log), or ew.standardize for scales"
        )
    return made


def levels_in(spec: Any) -> Levels:
    """Of each categorical factor, in the order that a table has them in."""
    return {
        name: tuple(map(plain, state["categories"]))
        for name, (_, state) in spec.encoder_state.items()
        if "categories" in state
    }


def plain(level: Any) -> Any:
    return level.item() if isinstance(level, np.generic) else level


def require_one_kind(own: list[Levels]) -> None:
    for node, levels in enumerate(own):
        if different := levels.keys() ^ own[0].keys():
            name = min(different)
            raise DataError(
                f"{name} is a category at node {node if name in levels else 0}, and numbers at "
                f"node {0 if name in levels else node}: write C({name}) for a category"
            )


def flooded(graph: Graph | str | None, own: list[Levels]) -> tuple[Levels, int]:
    """The levels of all nodes, and the rounds it took until all knew them."""
    known = [{name: set(levels) for name, levels in each.items()} for each in own]
    network = None if graph is None else graph_of(graph, len(own))
    rounds = 0
    if network is None:
        known[0] = {name: set().union(*(each[name] for each in known)) for name in own[0]}
    else:
        network.require_connected()
        while any(each != known[0] for each in known):
            told, rounds = known, rounds + 1
            known = [
                {
                    name: levels.union(*(told[int(j)][name] for j in network.neighbours(i)))
                    for name, levels in each.items()
                }
                for i, each in enumerate(told)
            ]
    return {name: in_order(name, known[0][name], own) for name in own[0]}, rounds


def in_order(name: str, levels: set[Any], own: list[Levels]) -> tuple[Any, ...]:
    """As all nodes have them, where that is one order; else sorted."""
    if all(each[name] == own[0][name] for each in own):
        return own[0][name]
    return tuple(sorted(levels, key=lambda level: (str(type(level)), level)))


def sides(text: str) -> tuple[Any, Any]:
    try:
        from formulaic import Formula
    except ImportError:
        raise InputError("formulas need formulaic: pip install 'edgewise[formula]'") from None
    try:
        made = Formula(text)
    except Exception as wrong:
        raise InputError(
            f"{text!r} is no formula ({str(wrong).splitlines()[0]}): write y ~ age + C(stage)"
        ) from wrong
    return getattr(made, "lhs", None), getattr(made, "rhs", made)


def context() -> dict[str, Any]:
    return {"np": np, "survival_labels": survival_labels}
