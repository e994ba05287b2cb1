"""scikit-learn estimators that fit over a network of nodes.

They take what scikit-learn's own take, and come to the same coefficients: see docs/sklearn.md.
"""

from edgewise.sklearn.classifiers import DecentralizedLogisticRegression, DecentralizedSVC
from edgewise.sklearn.families import (
    DecentralizedGammaRegressor,
    DecentralizedPoissonRegressor,
    DecentralizedQuantileRegressor,
    DecentralizedTweedieRegressor,
)
from edgewise.sklearn.model import DecentralizedModel
from edgewise.sklearn.regressors import (
    DecentralizedElasticNet,
    DecentralizedLasso,
    DecentralizedRidge,
)
from edgewise.sklearn.survival import DecentralizedCoxPH

__all__ = [
    "DecentralizedCoxPH",
    "DecentralizedElasticNet",
    "DecentralizedGammaRegressor",
    "DecentralizedLasso",
    "DecentralizedLogisticRegression",
    "DecentralizedModel",
    "DecentralizedPoissonRegressor",
    "DecentralizedQuantileRegressor",
    "DecentralizedRidge",
    "DecentralizedSVC",
    "DecentralizedTweedieRegressor",
]
