"""The package as such: stubs, examples, imports."""

import ast
import doctest
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import castwise
from castwise import _api, _command, _core

PACKAGE = pathlib.Path(castwise.__file__).parent


def test_stubs_are_those_of_the_module():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name: {m.name for m in n.body if isinstance(m, ast.FunctionDef)} for n in tree.body if isinstance(n, ast.ClassDef)}
    public = {n for n in dir(_core) if not n.startswith("_")}
    # An op of a Var is a `Function` too; the stubs tell the two apart by what a call gives.
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
    texts = set()
    for name in (*castwise.ops, *castwise.composites, *castwise.generators, "blocks"):
        f = getattr(castwise, name)
        assert f.__name__ == name and len(f.__doc__) > 8 and f.operands
        texts.add(f.__doc__)
    assert len(texts) > 150 and type(castwise.exp).__doc__ not in texts
    assert castwise.arctan2 is castwise.arctan2


def test_examples_run():
    for module in (castwise, _api, _command):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed, module
    for name in castwise.__all__:
        public = getattr(castwise, name)
        error = isinstance(public, type) and issubclass(public, (Exception, tuple))
        assert not callable(public) or error or ">>>" in public.__doc__, name


def test_blocks_of_the_readme_run():
    readme = pathlib.Path(__file__).parents[1] / "README.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", readme.read_text(), re.M | re.S)
    assert len(blocks) > 8
    names = {}
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, names, readme.name, str(readme), 0)
        runner = doctest.DocTestRunner()
        runner.run(test, clear_globs=False)
        assert test.examples and not runner.failures, block
        names = test.globs


def test_commands_of_the_readme_run(tmp_path):
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    np.save(tmp_path / "nir.npy", np.array([200, 30], np.uint8))
    np.save(tmp_path / "red.npy", np.array([100, 90], np.uint8))
    environment = os.environ | {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
    seen = 0
    for block in re.findall(r"^```console\n(.*?)^```$", readme, re.M | re.S):
        command, _, want = block.removeprefix("$ ").partition("\n")
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout + done.stderr == want
        seen += 1
    assert seen


def test_importing_loads_no_library():
    code = "import sys, castwise; castwise.compile('a + b'); print([m for m in ('numpy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
