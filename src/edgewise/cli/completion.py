"""Names that a shell may complete."""

from glob import glob


def methods() -> list[str]:
    from edgewise.methods.catalogue import AUTO, list_methods

    return [AUTO, *list_methods()]


def data_sets(incomplete: str) -> list[str]:
    """Files and folders too, which a shell leaves to us."""
    from edgewise.data import names

    return [*names(), *glob(incomplete + "*")]


def graphs() -> list[str]:
    from edgewise.spec import GRAPHS

    return list(GRAPHS)


def losses() -> list[str]:
    from edgewise.spec import LOSSES

    return list(LOSSES)


def penalties() -> list[str]:
    from edgewise.spec import PENALTIES

    return list(PENALTIES)


def splits() -> list[str]:
    return ["iid", "label", "size"]


def missing() -> list[str]:
    from edgewise.data.preparation import MISSING

    return list(MISSING)


def encodings() -> list[str]:
    from edgewise.data.preparation import ENCODINGS

    return list(ENCODINGS)


def weights() -> list[str]:
    return ["node", "sample"]


def log_levels() -> list[str]:
    return ["debug", "info", "warning", "error"]


def engines() -> list[str]:
    return ["simulator", "mpi"]


def partitions() -> list[str]:
    return ["metis", "contiguous"]


def experiments() -> list[str]:
    from edgewise.experiments import EXPERIMENTS

    return list(EXPERIMENTS)
