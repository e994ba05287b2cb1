"""What a class must declare (`backend.declared`) for a compiled copy of its formula to be run."""

ESTIMATORS = ("saga", "svrg", "plain-svrg", "lsvrg", "asvrg", "sega")
IN_PARTS = ("saga", "svrg", "plain-svrg")  # whose gradients are `memory.Draw`: what GPUs take
IN_CUDA = ("saga", "svrg", "plain-svrg", "lsvrg")
LOCAL_ESTIMATORS = ("saga", "svrg")  # between two messages
LOSSES = ("logistic", "squared", "huber", "smoothed-hinge")
ORACLES = ("exact-coordinates", "finite-difference")  # of coordinates
