"""A network with faults, written out: every message is a letter in a list. Only the random bits
are those of the library, so that the same letters get lost."""

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.backend.random_bits import draw_bits


def gradient(A, y, x, ridge):
    return A.T @ (-y / (1 + np.exp(y * (A @ x)))) / len(y) + ridge * x


def chance(part, length, was):
    """Of being off in a round, by what was in the one before."""
    if length is None:
        return part
    return 1 - 1 / length if was else part / (length * (1 - part))


def replay(parts, ridge, l1, f, eta, rho, rounds):
    """Edge-form primal-dual with exact gradients and an l1 penalty, a letter at a time; rho by
    (i, j). Yields models and the number of letters so far."""
    V, n = len(parts), parts[0][0].shape[1]
    at, key = jnp.arange(rounds), jax.random.key(f.seed)
    ways = [(i, j) for i in range(V) for j in range(V) if (i, j) in rho]  # from i to j
    ids = jnp.array([i * V + j for i, j in ways])
    by_edge = np.asarray(draw_bits(jax.random.fold_in(key, 0), ids, at, 2)).astype(object)
    by_node = np.asarray(draw_bits(jax.random.fold_in(key, 1), jnp.arange(V), at, 1)[..., 0])
    x = {i: np.zeros(n) for i in range(V)}
    said = {w: rho[w] * x[w[0]] for w in ways}
    heard, newest = {w: said[w[::-1]] for w in ways}, dict.fromkeys(ways, -1)  # along w
    fresh, asleep = dict.fromkeys(range(V), True), dict.fromkeys(range(V), False)
    cut, post, sent = dict.fromkeys(ways, False), [], 0
    unread, prompt, waited = set(), set(ways), dict.fromkeys(range(V), 0)
    present = set(range(V)) - ({i for i, _ in f.join} - {i for i, _ in f.leave})
    for t in range(rounds):
        present -= {node for node, r in f.leave if r == t}
        come = {node for node, r in f.join if r == t}
        present |= come
        for i in come | {node for node, r in f.wipe if r == t}:
            x[i], fresh[i] = np.zeros(n), True
            post = [p for p in post if p[3] != i and not (i in come and p[2] == i)]
            for w in ways:
                if w[0] == i:
                    said[w] = rho[w] * x[i]
                if w[1] == i or (w[0] == i and i in come):
                    heard[w] = rho[w] * x[w[1]]
                    unread.discard(w)
                if i in w:
                    prompt.discard(w)
            waited[i] = 0
        for w, (i, j) in enumerate(ways):
            cut[i, j] = by_edge[t, w, 0] < chance(f.drop, f.burst, cut[i, j]) * 2**32
            if not (fresh[i] and {i, j} <= present):
                continue
            sent += 1
            down = any({i, j} == {a, b} and lo <= t <= hi for a, b, lo, hi in f.down)
            if not (cut[i, j] or down):
                late = by_edge[t, w, 1] * (f.delay + 1) >> 32
                post.append((t + late, t, i, j, said[i, j]))
        for due, when, i, j, letter in post:
            if due == t:
                prompt.add((i, j))
            if due == t and when > newest[i, j]:
                heard[i, j], newest[i, j] = letter, when
                unread.add((i, j))
        for i in range(V):
            off = chance(1 - float(f.awake), f.nap, asleep[i]) * 2**32
            asleep[i] = bool(by_node[t, i] < off)
            fresh[i] = i in present and not asleep[i]
            near = [j for j in present if (i, j) in rho]
            if f.patience and fresh[i]:
                awaited = [j for j in near if (j, i) in prompt] or near
                fresh[i] = all((j, i) in unread for j in awaited) or waited[i] == f.patience
                waited[i] = 0 if fresh[i] else waited[i] + 1
            if fresh[i]:
                prompt -= {(j, i) for j in range(V)} - unread
                unread -= {(j, i) for j in range(V)}
                gamma = 1 / (1 / eta[i] + sum(rho[i, j] for j in near))
                pull = sum(heard[j, i] for j in near)
                z = gamma * (x[i] / eta[i] - gradient(*parts[i], x[i], ridge) + pull)
                x[i] = np.sign(z) * np.maximum(np.abs(z) - gamma * l1, 0)
                for j in range(V):
                    if (i, j) in rho:  # who is not there is told nothing
                        said[i, j] = (
                            2 * rho[i, j] * x[i] - heard[j, i] if j in near else np.zeros(n)
                        )
        yield np.array([x[i] for i in range(V)]), sent
