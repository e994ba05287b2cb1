"""Two power networks as plain numbers, for power_flow.py.

The numbers are those of PYPOWER 5.1.21 (BSD licence), which has them from MATPOWER:
case14, the IEEE 14-bus network of the University of Washington's archive, and case30, the network
of Alsac and Stott (1974) with the generators of Ferrero, Shahidehpour and Ramesh (1997).
Buses count from 1. Power is in MW, a reactance per unit on a base of 100 MVA, a cost in $/h.
PYPOWER's own DC optimal power flow costs 7642.5937 $/h on case14 and 565.2060 $/h on case30.
"""

from math import inf
from typing import NamedTuple

BASE = 100.0  # MVA


class PowerCase(NamedTuple):
    buses: int
    load: dict[int, float]  # bus: MW; the others have none
    generators: list[tuple[int, float, float, float]]  # bus, most MW, a, b: a p² + b p $/h, p in MW
    lines: list[tuple[int, int, float, float, float]]  # from, to, reactance, tap ratio, most MW


# fmt: off
CASE14 = PowerCase(
    buses=14,
    load={
        2: 21.7, 3: 94.2, 4: 47.8, 5: 7.6, 6: 11.2, 9: 29.5, 10: 9, 11: 3.5, 12: 6.1,
        13: 13.5, 14: 14.9,
    },
    generators=[
        (1, 332.4, 0.0430293, 20),
        (2, 140, 0.25, 20),
        (3, 100, 0.01, 40),
        (6, 100, 0.01, 40),
        (8, 100, 0.01, 40),
    ],
    lines=[
        (1, 2, 0.05917, 1, inf),
        (1, 5, 0.22304, 1, inf),
        (2, 3, 0.19797, 1, inf),
        (2, 4, 0.17632, 1, inf),
        (2, 5, 0.17388, 1, inf),
        (3, 4, 0.17103, 1, inf),
        (4, 5, 0.04211, 1, inf),
        (4, 7, 0.20912, 0.978, inf),
        (4, 9, 0.55618, 0.969, inf),
        (5, 6, 0.25202, 0.932, inf),
        (6, 11, 0.1989, 1, inf),
        (6, 12, 0.25581, 1, inf),
        (6, 13, 0.13027, 1, inf),
        (7, 8, 0.17615, 1, inf),
        (7, 9, 0.11001, 1, inf),
        (9, 10, 0.0845, 1, inf),
        (9, 14, 0.27038, 1, inf),
        (10, 11, 0.19207, 1, inf),
        (12, 13, 0.19988, 1, inf),
        (13, 14, 0.34802, 1, inf),
    ],
)

CASE30 = PowerCase(
    buses=30,
    load={
        2: 21.7, 3: 2.4, 4: 7.6, 7: 22.8, 8: 30, 10: 5.8, 12: 11.2, 14: 6.2, 15: 8.2,
        16: 3.5, 17: 9, 18: 3.2, 19: 9.5, 20: 2.2, 21: 17.5, 23: 3.2, 24: 8.7, 26: 3.5,
        29: 2.4, 30: 10.6,
    },
    generators=[
        (1, 80, 0.02, 2),
        (2, 80, 0.0175, 1.75),
        (22, 50, 0.0625, 1),
        (27, 55, 0.00834, 3.25),
        (23, 30, 0.025, 3),
        (13, 40, 0.025, 3),
    ],
    lines=[
        (1, 2, 0.06, 1, 130),
        (1, 3, 0.19, 1, 130),
        (2, 4, 0.17, 1, 65),
        (3, 4, 0.04, 1, 130),
        (2, 5, 0.2, 1, 130),
        (2, 6, 0.18, 1, 65),
        (4, 6, 0.04, 1, 90),
        (5, 7, 0.12, 1, 70),
        (6, 7, 0.08, 1, 130),
        (6, 8, 0.04, 1, 32),
        (6, 9, 0.21, 1, 65),
        (6, 10, 0.56, 1, 32),
        (9, 11, 0.21, 1, 65),
        (9, 10, 0.11, 1, 65),
        (4, 12, 0.26, 1, 65),
        (12, 13, 0.14, 1, 65),
        (12, 14, 0.26, 1, 32),
        (12, 15, 0.13, 1, 32),
        (12, 16, 0.2, 1, 32),
        (14, 15, 0.2, 1, 16),
        (16, 17, 0.19, 1, 16),
        (15, 18, 0.22, 1, 16),
        (18, 19, 0.13, 1, 16),
        (19, 20, 0.07, 1, 32),
        (10, 20, 0.21, 1, 32),
        (10, 17, 0.08, 1, 32),
        (10, 21, 0.07, 1, 32),
        (10, 22, 0.15, 1, 32),
        (21, 22, 0.02, 1, 32),
        (15, 23, 0.2, 1, 16),
        (22, 24, 0.18, 1, 16),
        (23, 24, 0.27, 1, 16),
        (24, 25, 0.33, 1, 16),
        (25, 26, 0.38, 1, 16),
        (25, 27, 0.21, 1, 16),
        (28, 27, 0.4, 1, 65),
        (27, 29, 0.42, 1, 16),
        (27, 30, 0.6, 1, 16),
        (29, 30, 0.45, 1, 16),
        (8, 28, 0.2, 1, 32),
        (6, 28, 0.06, 1, 32),
    ],
)
# fmt: on
