"""The Python blocks of the book's pages; those of docs/dask.md are in ``test_dask.py``."""

import doctest
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = ["tutorial/python.md", "from/numexpr.md"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)


def test_every_page_with_blocks_is_tested():
    with_examples = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md") if ">>> " in "".join(blocks(p.relative_to(DOCS)))}
    assert with_examples - {"dask.md"} == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page):
    test = doctest.DocTestParser().get_doctest("\n".join(blocks(page)), {}, page, str(DOCS / page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert len(test.examples) > 3 and not runner.failures
