"""Labels as people have them, and what the theory regresses on."""

import numpy as np
from jaxtyping import Float

from attnpaths import _checks

#: Kinds of labels: ±1, numbers of classes, or numbers to regress on, several for each example.
SIGNS, CLASSES, VALUES = "signs", "classes", "values"


def targets(labels, classes: int | None = None) -> tuple[str, Float[np.ndarray, "P *C"]]:
    """The kind of the labels, and y `[P]` or `[P, C]`.

    Labels ±1 stay as they are; 0 and 1 become −1 and +1. Classes 0 … C − 1 become C outputs,
    1 − 1/C for the class of an example and −1/C for the others, so that the outputs of an example
    add up to 0. With `classes`, some of so many may be missing.
    """
    value = _checks.untensor(labels)
    first = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(first, str) or getattr(getattr(first, "dtype", None), "kind", "") in ("U", "S"):
        raise ValueError(
            "labels must be numbers; names become numbers by "
            "np.unique(labels, return_inverse=True)[1]"
        )
    if _checks.axes_of(value) == 2:
        return VALUES, np.asarray(_checks.array("labels", value, "examples outputs"))
    y = np.asarray(_checks.array("labels", value, "examples"))
    found = np.unique(y)
    signs = np.isin(found, (-1, 1)).all()
    if signs and (-1 in found if classes is None else classes == 2 and 0 not in found):
        return SIGNS, y
    count = classes or int(max(found.max(), 1)) + 1
    whole = np.array_equal(found, np.round(found)) and found.min() >= 0 and found.max() < count
    if not whole or (classes is None and len(found) != count):
        raise ValueError(
            "labels must be −1 and +1, or the numbers of classes 0, 1, …, C − 1, all of them; got "
            f"{found[:5].tolist()}{' …' if len(found) > 5 else ''}; numbers to regress on are "
            "given as [examples, outputs], one number each as labels[:, None]"
        )
    if count == 2:
        return CLASSES, 2 * y - 1
    return CLASSES, np.eye(count)[y.astype(int)] - 1 / count


def hits(mean, y) -> np.ndarray:
    """Which examples are right: by sign, or, of several outputs, by the largest."""
    mean, y = np.asarray(mean), np.asarray(y)
    if y.ndim == 1:
        return np.sign(mean) == np.sign(y)
    return mean.argmax(axis=-1) == y.argmax(axis=-1)
