"""How well a model does, at each node and over all of them, from sums over the network.

Every function takes a graph, the labels of each node and what the model said of them, also per
node. What a node adds are counts in cells and sums over its samples; none of less than
`least_count` people (`sum_counts`). `options` are those of `sum_over`. `nodes` in what they return
is what each node has come to of its own samples: it knows that by itself, and tells nobody.
"""

from edgewise.statistics.metrics.calibration import CalibrationCurve, calibration_curve
from edgewise.statistics.metrics.concordance import Concordance, concordance_index
from edgewise.statistics.metrics.confusion import ConfusionMatrix, confusion_matrix
from edgewise.statistics.metrics.explained_variance import R2, r2
from edgewise.statistics.metrics.means import MeanScore, log_loss, mean_squared_error
from edgewise.statistics.metrics.roc import RocCurve, roc_auc

__all__ = [
    "R2",
    "CalibrationCurve",
    "Concordance",
    "ConfusionMatrix",
    "MeanScore",
    "RocCurve",
    "calibration_curve",
    "concordance_index",
    "confusion_matrix",
    "log_loss",
    "mean_squared_error",
    "r2",
    "roc_auc",
]
