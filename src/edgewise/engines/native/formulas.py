"""What a class must declare (`backend.declared`) for a compiled copy of its formula to be run."""

ESTIMATORS = ("saga", "svrg", "plain-svrg")
LOCAL_ESTIMATORS = ("saga", "svrg")  # between two messages
LOSSES = ("logistic", "squared", "huber", "smoothed-hinge")
