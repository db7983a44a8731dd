"""The package as such: stubs, examples, imports."""

import ast
import doctest
import pathlib
import subprocess
import sys

import pytest

import castwise
from castwise import _api, _core

PACKAGE = pathlib.Path(castwise.__file__).parent


def test_stubs_are_those_of_the_module():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name: {m.name for m in n.body if isinstance(m, ast.FunctionDef)} for n in tree.body if isinstance(n, ast.ClassDef)}
    public = {n for n in dir(_core) if not n.startswith("_")}
    # An op of a Var is an `OpFunction` too; the stubs tell the two apart by what a call gives.
    del classes["Method"]
    assert public == functions | set(classes)
    for name, members in classes.items():
        own = set(vars(getattr(_core, name)))
        missing = members - own - {"__init__", "__getattr__", "__name__"}
        assert not missing, (name, missing)
        assert {n for n in own if not n.startswith("_")} <= members, name


def test_stubs_satisfy_a_strict_type_checker():
    api = pytest.importorskip("mypy.api")
    user = pathlib.Path(__file__).with_name("typed_user.py")
    out, _, status = api.run(["--strict", "--cache-dir", "/dev/null", str(user)])
    assert status == 0, out


def test_every_op_is_a_function_with_a_text():
    assert len(castwise.ops) > 100
    for name in castwise.ops:
        f = getattr(castwise, name)
        assert f.__name__ == name and len(f.__doc__) > 10 and f.operands
    assert castwise.arctan2 is castwise.arctan2


def test_examples_run():
    for module in (castwise, _api):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed, module


def test_importing_loads_no_library():
    code = "import sys, castwise; castwise.compile('a + b'); print([m for m in ('numpy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
