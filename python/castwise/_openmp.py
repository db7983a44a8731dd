"""The threads of PyTorch's OpenMP, for castwise's runs: what the core asks for at the first tensor of PyTorch."""

from __future__ import annotations

import ctypes
import sys

from . import _core


def share() -> bool:
    """Has runs of this process take the threads of PyTorch's OpenMP, if it has one with GCC's interface.

    Returns:
        Whether they do.
    """
    torch = sys.modules.get("torch")
    file = getattr(getattr(torch, "_C", None), "__file__", None)
    if file is None or sys.platform != "linux":
        return False
    try:
        # The symbols of PyTorch's extension are looked up in the libraries that it is linked with.
        library = ctypes.CDLL(file)
        functions = [library.GOMP_parallel, library.omp_get_max_threads]
    except (OSError, AttributeError):
        return False
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]
    return _core._use_openmp(*addresses)
