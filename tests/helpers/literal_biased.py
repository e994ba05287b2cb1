"""SAG, PAGE and SARAH as printed, for `literal.run`: loops, plain NumPy, an oracle that counts."""

from math import ceil

from literal import draw, heads


def sag(node, x):
    """Le Roux, Schmidt, Bach 2012, Algorithm 1: d is the sum of all samples' last gradients."""
    last = [node.sample(x, k) for k in range(node.K)]
    x, words = yield
    while True:
        for k in draw(words, node.K):
            last[k] = node.sample(x, k)
        x, words = yield sum(last) / node.K + node.ridge_part(x)


def corrected(node, g, x, before, words):
    picked = draw(words, node.K)
    change = sum(node.sample(x, k) - node.sample(before, k) for k in picked)
    return g + change / len(picked)


def page(node, x):
    """Li, Bao, Zhang, Richtarik 2021, Algorithm 1, with p = b / (K + b) and all K for the large
    batch."""
    x, words = yield
    b = len(words) - 1
    g = node.mean(x)
    while True:
        before = x
        x, words = yield g + node.ridge_part(x)
        if heads(words[0], b / (node.K + b)):
            g = node.mean(x)
        else:
            g = corrected(node, g, x, before, words[1:])


def sarah(node, x, length=None):
    """Nguyen, Liu, Scheinberg, Takac 2017, Algorithm 1, going on from the last iterate."""
    x, words = yield
    m = length or ceil(node.K / len(words))
    while True:
        g = node.mean(x)
        for _ in range(m - 1):
            before = x
            x, words = yield g + node.ridge_part(x)
            g = corrected(node, g, x, before, words)
        x, words = yield g + node.ridge_part(x)
