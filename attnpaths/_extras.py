"""Packages that only some rooms of the library need: imported on first use, or asked for."""

import importlib
from types import ModuleType


def require(module: str, extra: str, what: str) -> ModuleType:
    """The module, or an error with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != module.split(".")[0]:
            # the package is there, and something that it needs is not
            raise
        raise ModuleNotFoundError(
            f'{what} needs {module}, which is not installed: pip install "attnpaths[{extra}]"',
            name=error.name,
        ) from None
