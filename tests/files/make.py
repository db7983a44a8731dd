"""Writes the files of this directory with NumPy itself: `python make.py` (made with NumPy 2.4).

Every dtype that castwise shares with NumPy, as

    KIND.npy                 format version 1, row-major, little-endian, shape (2, 3)
    KIND-v2-big-fortran.npy  version 2, big-endian (where that means something), column-major, shape (2, 3)
    KIND-v3-0d.npy           version 3, no dims

and some shapes, and both kinds of .npz. `tests/numpy_files.rs` knows the values and compares.
"""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent


def values(kind):
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return [True, False, True, True, False, False]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [limits.min, limits.max, 0, 1, 2, 100]
    if dtype.kind == "f":
        return [0.0, -0.0, 1.5, -np.inf, np.nan, np.finfo(dtype).smallest_subnormal]
    return [complex(1.5, -2.5), complex(-0.0, np.inf), 0j, 1j, complex(np.nan, 0.0), complex(-1.0, 0.25)]


def write(name, array, version=(1, 0)):
    with open(HERE / name, "wb") as file:
        np.lib.format.write_array(file, array, version)


for kind in ["b1", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]:
    array = np.array(values(kind), dtype=kind).reshape(2, 3)
    write(f"{kind}.npy", array)
    write(f"{kind}-v2-big-fortran.npy", np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))), (2, 0))
    write(f"{kind}-v3-0d.npy", array[1, 0], (3, 0))

# A first dim of many digits uses up the room that NumPy leaves for it; many dims need a longer header.
for name, shape in [("1d", (5,)), ("empty", (0, 3)), ("wide", (1234567890123, 0)), ("rank64", (1,) * 64), ("0d", ())]:
    write(f"shape-{name}.npy", np.zeros(shape, dtype="f4"))
for digits in [1, 10, 19]:
    write(f"shape-{digits}-digits.npy", np.zeros((10 ** (digits - 1), 0, 7), dtype="u1"))

arrays = {
    "x": np.arange(6, dtype="f4").reshape(2, 3),
    "layer/bias": np.array([1, -1], dtype=">i2"),
    "zero": np.zeros((0, 2), dtype="f8"),
    "run": np.full(5000, 7, dtype="i4"),
    "columns": np.asfortranarray(np.arange(6, dtype="c8").reshape(2, 3)),
}
np.savez_compressed(HERE / "deflated.npz", **arrays)
del arrays["run"]
np.savez(HERE / "stored.npz", **arrays)
