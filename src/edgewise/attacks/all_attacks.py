"""Every attack on one recording, by everybody who might be curious."""

from collections.abc import Callable
from typing import Any

import numpy as np

from edgewise.attacks import findings as of
from edgewise.attacks import membership as asked
from edgewise.attacks.curvature_news import hessians, tells_hessians, told_moments, true_moments
from edgewise.attacks.findings import Finding
from edgewise.attacks.gossip import can_reconstruct, hops, reconstructed
from edgewise.attacks.gradients_seen import Seen, gradients_seen
from edgewise.attacks.label_share import can_estimate, estimated, true_shares
from edgewise.attacks.recording import Recording
from edgewise.attacks.row_attacks import node_changes, rows_found
from edgewise.attacks.scores import auc, correlation
from edgewise.attacks.views import all_neighbours, coalition, first_neighbours, one_neighbour
from edgewise.problem.problem import Problem


class Attacks:
    """All of them on one recording."""

    def __init__(
        self, recording: Recording, members: np.ndarray, secret_draws: bool, patient: bool
    ) -> None:
        self.recording, self.members = recording, members
        self.secret, self.patient = secret_draws, patient
        self.found: list[Finding] = []
        self.by_node: dict[tuple[str, str], np.ndarray] = {}
        self.not_tried: list[str] = []

    def run(self) -> None:
        r, V = self.recording, self.recording.graph.nodes
        everybody = np.ones(V, bool)
        outside = ~self.members
        near = outside & (hops(r, self.members) == 1)
        first = first_neighbours(r)
        attackers = {
            of.NEIGHBOUR: (one_neighbour(r), everybody, [[int(a)] for a in first]),
            of.NEIGHBOURS: (
                all_neighbours(r),
                everybody,
                [r.graph.neighbours(i).tolist() for i in range(V)],
            ),
            of.COALITION: (
                coalition(r, self.members),
                near,
                V * [np.flatnonzero(self.members).tolist()],
            ),
        }
        for who, (view, victims, theirs) in attackers.items():
            if not victims.any():
                self.not_tried.append(f"{who}: nobody is next to it")
                continue
            seen = gradients_seen(r, view)
            if seen is None:
                self.not_tried.append(f"{who}: {type(r.method).__name__} has no inverse here")
                continue
            self.gradients(who, seen, victims)
            self.rows(who, seen, victims)
            self.moments(who, victims)
            self.shares(who, seen.values[0], seen.at[0], victims, theirs)
        self.far(theirs)

    def gradients(self, who: str, seen: Seen, victims: np.ndarray) -> None:
        """How like the first one is to that of all of a node's samples there, beside another's."""
        which = np.flatnonzero(victims)
        self.likeness(who, "first gradient", seen.values[0], seen.true, which)

    def likeness(
        self, who: str, what: str, guess: np.ndarray, true: np.ndarray, which: np.ndarray
    ) -> None:
        like = np.array([correlation(guess[i], true[i]) for i in which])
        other = np.roll(which, 1)
        fake = [correlation(guess[i], true[j]) for i, j in zip(which, other, strict=True)]
        several = np.nanmedian(fake) if len(which) > 1 else np.nan
        self.note(who, what, "median correlation", np.nanmedian(like), several, len(which))
        each = np.full(self.recording.graph.nodes, np.nan)
        each[which] = like
        self.by_node[who, what] = each

    def rows(self, who: str, seen: Seen, victims: np.ndarray) -> None:
        rows = rows_found(self.recording, seen, victims, self.secret, self.patient)
        many = int(sum(map(len, rows.true)))
        true, fake = np.concatenate(rows.true), np.concatenate(rows.shuffled)
        self.note(
            who, "rows", "recovered", (true > rows.bar).mean(), (fake > rows.bar).mean(), many
        )
        self.note(who, "rows", "median correlation", np.median(true), np.median(fake), many)
        if not seen.single:
            self.note(who, "rows", "part in the span", rows.spanned, rows.spanned_shuffled, many)
        each = np.full(self.recording.graph.nodes, np.nan)
        each[victims] = [np.mean(c > rows.bar) for c in rows.true]
        self.by_node[who, "rows"] = each

    def moments(self, who: str, victims: np.ndarray) -> None:
        """Of methods that tell Hessians, which are second moments of rows, weighted by slopes."""
        if not tells_hessians(self.recording):
            return
        r, which = self.recording, np.flatnonzero(victims)
        told, true = told_moments(r, hessians(r), first_neighbours(r)), true_moments(r)
        guess, flat = told.reshape(len(told), -1), true.reshape(len(true), -1)
        self.likeness(who, "second moments", guess, flat, which)

    def shares(
        self, who: str, g: np.ndarray, x: np.ndarray, victims: np.ndarray, theirs: list[list[int]]
    ) -> None:
        r = self.recording
        if not can_estimate(r.problem):
            self.tell_once(f"label share: not of {type(r.problem.loss).__name__}")
            return
        which = np.flatnonzero(victims)
        told = (estimated(r.problem, g[i], x[i], i, theirs[i]) for i in which.tolist())
        guess = np.array(list(told))
        truth = true_shares(r.problem)[which]
        got = correlation(guess, truth)
        if np.isnan(got):
            self.tell_once(f"{who}, label share: fewer than three nodes tell one, or all are alike")
            return
        rng = np.random.default_rng(r.seed)
        fake = [correlation(guess, rng.permutation(truth)) for _ in range(200)]
        self.note(
            who, "label share", "correlation", got, float(np.nanmean(np.abs(fake))), len(which),
            np.sqrt(max(1 - got**2, 0) / max(np.isfinite(guess).sum() - 2, 1)),
        )  # fmt: skip
        off = np.sqrt(np.nanmean((guess - truth) ** 2))
        self.note(who, "label share", "error", off, np.std(truth), len(which))
        each = np.full(r.graph.nodes, np.nan)
        each[which] = guess
        self.by_node[who, "label share"] = each

    def far(self, theirs: list[list[int]]) -> None:
        """Nodes that are no neighbours of the coalition."""
        r, who = self.recording, of.COALITION
        away = hops(r, self.members) > 1
        if not away.any() or not can_reconstruct(r):
            why = (
                "all are next to it" if not away.any() else "a penalty or the method is in the way"
            )
            self.not_tried.append(f"{who}, nodes further away: {why}")
            return
        own = gradients_seen(r, all_neighbours(r))
        assert own is not None
        g = reconstructed(r, self.members, np.nan_to_num(own.values + own.ridge))
        g = g - own.ridge[0]
        which = np.array([i for i in np.flatnonzero(away) if np.isfinite(g[i]).any()], int)
        if not len(which):
            self.not_tried.append(f"{who}, nodes further away: nothing comes through")
            return
        self.likeness(who, "first gradient further away", g, own.true, which)
        self.shares(f"{who}, further away", g, own.at[0], np.isin(np.arange(len(g)), which), theirs)

    def ask_of_members(self, made: Callable[[Problem], Recording]) -> None:
        """Of a run on half of the data, which `made` makes."""
        r = self.recording
        if r.problem.loss.outputs != 1:
            self.not_tried.append("membership: of losses of one output")
            return
        if r.problem.counts.min() < 2:
            self.not_tried.append("membership: a node has one sample alone, which has no halves")
            return
        inside, outside = asked.halves(r.problem, r.seed)
        run = made(asked.of_members(r.problem, inside))
        x = run.last.mean(0)
        ins, outs = (asked.likelihoods(r.problem, x, rows) for rows in (inside, outside))
        self.membership(of.ANYBODY, "loss of the model", ins, outs, inside, outside)
        seen = gradients_seen(run, all_neighbours(run))
        if seen is None:
            return
        scores = []
        for rows in (inside, outside):
            nodes = asked.nodes_of(r.problem, rows)
            parts = [
                membership_scores(r, run, seen, i, rows[nodes == i]) for i in range(r.graph.nodes)
            ]
            scores.append(np.concatenate(parts))
        self.membership(of.NEIGHBOURS, "messages", scores[0], scores[1], inside, outside)

    def membership(
        self, who: str, by: str, ins: np.ndarray, outs: np.ndarray, inside: Any, outside: Any
    ) -> None:
        got, error = auc(ins, outs)
        self.note(who, f"membership by {by}", "AUC", got, 0.5, len(ins) + len(outs), error)
        of_ins, of_outs = (asked.nodes_of(self.recording.problem, a) for a in (inside, outside))
        each = [
            auc(ins[of_ins == i], outs[of_outs == i])[0] for i in range(self.recording.graph.nodes)
        ]
        self.by_node[who, f"membership by {by}"] = np.array(each)

    def note(
        self, who: str, attack: str, measure: str, got: Any, chance: Any, many: int,
        error: Any = np.nan,
    ) -> None:  # fmt: skip
        numbers = float(got), float(error), float(chance)
        self.found.append(Finding(who, attack, measure, *numbers, many))

    def tell_once(self, what: str) -> None:
        if what not in self.not_tried:
            self.not_tried.append(what)


def membership_scores(
    r: Recording, run: Recording, seen: Seen, node: int, rows: np.ndarray
) -> np.ndarray:
    """Of candidates at one node, from what its messages told."""
    problem = r.problem
    if seen.single:
        changed = node_changes(run, seen, node, None)
        D = asked.rows_with_intercept(problem, rows)
        scale = asked.rows_with_intercept(problem, np.arange(problem.shards.samples)).std(0)
        return asked.alignment(changed.values, D, np.where(scale > 0, scale, np.inf))
    return asked.pull_along(problem, np.nan_to_num(seen.values[:, node]), seen.at[:, node], rows)
