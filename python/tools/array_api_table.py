"""The table of docs/array-api.md: every function of the array API standard, whether ``castwise.xp`` has it, and why not.

    python python/tools/array_api_table.py [--write]
"""

import pathlib
import sys

import array_api_strict as strict

import castwise
from castwise import _xp

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "array-api.md"
MARK = "<!-- table -->\n"

#: What is said of functions that are there.
NOTES = {
    "asarray": "copies what is not a castwise array; `copy=False` of it is refused",
    "from_dlpack": "copies",
    "empty": "zeros",
    "empty_like": "zeros",
    "repeat": "one number for all elements; with an array the shape depends on values",
    "argsort": "always stable",
    "sort": "always stable",
    "can_cast": "whether the rules promote to the dtype",
    "result_type": "by the rules; scalars last",
    "__array_namespace_info__": "no boolean indexing, no data-dependent shapes",
}

#: Attributes and operators of arrays that are not as they are in the standard.
ARRAYS = [
    ("`x[index]`", "yes", "integers, slices with any step, `None`, `...`; no arrays: `xp.take` and `xp.take_along_axis` index by values"),
    ("`x[index] = v`", "no", "arrays do not change, so that they may share memory"),
    ("`x += y`", "yes", "makes a new array, of the dtype and shape of `x`; under the rules of JAX and Paddle those of `x + y`"),
    ("`x @ y`", "no", "castwise has no products of matrices"),
    ("other operators and attributes", "yes", ""),
    ("`__dlpack__`, `__array__`", "yes", "copy; `copy=False` is refused"),
]


def functions() -> list[tuple[str, str]]:
    """The functions of the standard, with the part of it that they are in."""
    found = []
    for name in strict.__all__:
        f = getattr(strict, name)
        module = (getattr(f, "__module__", None) or "").rpartition(".")[2]
        if module.endswith("_functions") or module == "_info":
            found.append((module.strip("_").removesuffix("_functions").replace("_", " "), name))
    return [*found, ("extensions", "linalg"), ("extensions", "fft")]


def table() -> str:
    xp = castwise.xp("numpy")
    rows = []
    for part, name in sorted(functions()):
        there = hasattr(xp, name)
        why = NOTES.get(name, "") if there else _xp.REFUSED[name]
        rows.append(f"| {part} | `{name}` | {'yes' if there else 'no'} | {why} |")
    rows += [f"| arrays | {what} | {there} | {why} |" for what, there, why in ARRAYS]
    yes = sum("| yes |" in row for row in rows)
    head = f"{yes} yes, {len(rows) - yes} no.\n\n| part | function | | why |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        text = PAGE.read_text()
        PAGE.write_text(text[: text.index(MARK) + len(MARK)] + table())
    else:
        print(table())
