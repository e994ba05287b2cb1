"""What noise costs: against the formula by itself, and two other accountants of the library."""

import numpy as np
import pytest
from scipy.stats import norm

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

import dp_accounting

from edgewise.differential_privacy.accountant import epsilon_of, largest_mu, noise_for

DELTA = 1e-5


def delta_of(mu, epsilon):
    """Balle, Wang 2018, Theorem 8: of a Gaussian mechanism, exactly."""
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_epsilon_of_one_release_is_the_closed_form(epsilon):
    mu = largest_mu(epsilon, DELTA)
    assert delta_of(mu, epsilon) == pytest.approx(DELTA, rel=1e-6)
    assert epsilon_of(mu, DELTA) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon_of(0.0, DELTA) == 0


@pytest.mark.parametrize("rounds", [1, 150])
def test_rounds_add_up_as_in_other_accountants(rounds):
    """RDP is looser by its conversion, privacy loss distributions by a grid: neither is less."""
    z = noise_for(3.0, DELTA, rounds)
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(z), rounds)
    renyi = dp_accounting.rdp.RdpAccountant().compose(event).get_epsilon(DELTA)
    grid = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    assert 3.0 < renyi < 3.5
    assert grid.compose(event).get_epsilon(DELTA) == pytest.approx(3.0, rel=0.02)
    assert epsilon_of(np.sqrt(rounds) / z, DELTA) <= 3.0
