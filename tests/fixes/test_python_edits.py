"""Edits of Python code, one case each."""

from __future__ import annotations

import pytest

from dslint.documents.document import Document
from dslint.documents.notebook_reader import NotebookSource
from dslint.documents.python_reader import read_script
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.python_code.dicts import delete_key, rename_key, set_key
from dslint.fixes.python_code.edits import delete_code, insert_code, replace_code, set_arguments, unguard
from dslint.runs.script.config_use import as_document, config_uses
from dslint.runs.script.reading import read_deeds
from dslint.runs.script.values import Table


def at(text: str, piece: str) -> tuple[Source, Span]:
    data = text.encode()
    start = data.index(piece.encode())
    return Source("train.py", data), Span(start, start + len(piece.encode()))


def after(source: Source, edits: list[Edit]) -> str:
    return applied(source, edits).data.decode()


@pytest.mark.parametrize(
    ("text", "piece", "new", "expected"),
    [
        ("a = b * 2\n", "b", "x + y", "a = (x + y) * 2\n"),
        ("def f():\n  return(a,b)\n", "(a,b)", "x", "def f():\n  return(x)\n"),
        ("a.b.c", "a.b", "x or y", "(x or y).c"),
        ("f(1)", "1", "x, y", "f((x, y))"),
        ("def f(a: int = 1): pass", "int", "str", "def f(a: str = 1): pass"),
        ("f( x=1, y=2)", "x=1", "z = 3", "f( z = 3, y=2)"),
        ("f(1)  # é\r\n", "f(1)", "z = f()", "z = f()  # é\r\n"),
        (
            "\ufeff# -*- coding: latin-1 -*-\n\fx = 'é' + b\n",
            "b",
            "c",
            "\ufeff# -*- coding: latin-1 -*-\n\fx = 'é' + c\n",
        ),
    ],
)
def test_code_is_replaced_and_means_what_was_asked(text: str, piece: str, new: str, expected: str) -> None:
    source, span = at(text, piece)
    assert after(source, replace_code(source, span, new)) == expected


ARGUMENTS = "f(\n    1,  # one\n    # above two\n    2,  # two\n    x=3,  # three\n    # end\n)\n"


@pytest.mark.parametrize(
    ("text", "piece", "expected"),
    [
        (ARGUMENTS, "2", ARGUMENTS.replace("    2,  # two\n", "")),
        (ARGUMENTS, "x=3", ARGUMENTS.replace("    x=3,  # three\n", "")),
        ("f(a, b, c)", "b", "f(a, c)"),
        ("f(a, b, c)", "c", "f(a, b)"),
        ("x = {'a': 1, 'b': 2}", "'b'", "x = {'a': 1}"),
        (
            "if x:\n    # above\n    f()  # c\n    # end\ny\n",
            "f()",
            "if x:\n    # above\n    pass\n    # end\ny\n",
        ),
        ("# above\na = f()  # c\nb\n", "f()", "# above\nb\n"),
        ("async def g():\n\tawait f()\n\ty\n", "f()", "async def g():\n\ty\n"),
        ("a(); b()  # c\n", "b()", "a()  # c\n"),
        ("if x: f()\n", "f()", "if x: pass\n"),
        ("@a\n# above\n@b(1)\ndef f(): pass\n", "b(1)", "@a\n# above\ndef f(): pass\n"),
        ("with a() as b, c():\n  pass\n", "c()", "with a() as b:\n  pass\n"),
    ],
)
def test_what_is_taken_out_leaves_the_comments_above(text: str, piece: str, expected: str) -> None:
    source, span = at(text, piece)
    assert after(source, delete_code(source, span)) == expected


@pytest.mark.parametrize(
    ("text", "piece"), [("x = 1 + f()\n", "f()"), ("with f():\n  pass\n", "f()"), ("def g():\n return f()", "f()")]
)
def test_what_the_code_around_needs_is_not_taken_out(text: str, piece: str) -> None:
    source, span = at(text, piece)
    with pytest.raises(CannotEditError, match=r"can't do without it|has nothing else"):
        delete_code(source, span)


def test_the_first_line_of_a_call_stands_for_all_of_it() -> None:
    source, span = at("x\nf(\n    1,\n)\ny\n", "f(")
    assert after(source, delete_code(source, span)) == "x\ny\n"


def test_two_calls_that_begin_at_one_place_are_not_told_apart() -> None:
    source, span = at("f(\n  1\n).g(\n 2)\n", "f(")
    with pytest.raises(CannotEditError, match="more than one call"):
        delete_code(source, span)


@pytest.mark.parametrize(
    ("text", "is_after", "expected"),
    [
        ("def g():\n\n\t# about f\n\tx = f()  # c\n", False, "def g():\n\n\tnew()\n\t# about f\n\tx = f()  # c\n"),
        ("def g():\r\n\tx = f()  # c", True, "def g():\r\n\tx = f()  # c\r\n\tnew()"),
        ("if x: f(); b()", True, "if x: f(); new(); b()"),
        ("for i in f():\n  pass\n", True, "for i in f():\n  pass\nnew()\n"),
        ("if y:\n  @f()\n  def g(): pass\n", False, "if y:\n  new()\n  @f()\n  def g(): pass\n"),
    ],
)
def test_a_statement_is_put_in_as_deep_as_its_neighbour(text: str, is_after: bool, expected: str) -> None:
    source, span = at(text, "f()")
    assert after(source, insert_code(source, span, "new()", is_after)) == expected


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("f(1, a = 2)", {"x": "4", "a": None}, "f(1, x = 4)"),
        ("f()", {"x": "4", "y": "1, 2"}, "f(x=4, y=(1, 2))"),
        ("f(**kw)", {"x": "4"}, "f(**kw, x=4)"),
        ("f(\n  a=1,\n)", {"a": "2", "b": "3"}, "f(\n  a=2,\n  b=3,\n)"),
        ("f(\n  a=1  # one\n)", {"b": "3"}, "f(\n  a=1,  # one\n  b=3\n)"),
        ("f(x for x in y)", {"b": "3"}, "f((x for x in y), b=3)"),
        ("f(a)", {"b": None}, "f(a)"),
    ],
)
def test_arguments_are_set_in_the_style_of_the_call(
    text: str, arguments: dict[str, str | None], expected: str
) -> None:
    source = Source("train.py", text.encode())
    assert after(source, set_arguments(source, Span(0, len(text)), arguments)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if r == 0:\n    # save\n    s()  # c\n    p()\nq\n", "# save\ns()  # c\nif r == 0:\n    p()\nq\n"),
        ("if r == 0:\n    p()\n    s(\n    )\nq\n", "if r == 0:\n    p()\ns(\n)\nq\n"),
        ("# a\nif r == 0:  # b\n    s()\n    # end\nq\n", "# a\ns()\n# end\nq\n"),
        ("if r == 0: s()  # c\n", "s()  # c\n"),
        ("def g():\n  if r == 0: s(); p()\n", "def g():\n  s()\n  if r == 0: p()\n"),
    ],
)
def test_a_statement_leaves_its_if(text: str, expected: str) -> None:
    source, span = at(text, "s(")
    assert after(source, unguard(source, span)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("if r:\n  a()\n  s()\n  b()\n", "before it and behind it"),
        ("if r:\n  s()\nelse:\n  b()\n", "`else` or `elif`"),
        ("if r:\n  p = 1\n  s(p)\n", "needs `p`"),
        ("def f():\n  if r:\n    return\n    s()\n", "may leave the `if`"),
        ("if (n := 1):\n  s()\n", "sets a name"),
        ("if r:\n  with a:\n    s()\n", "further block"),
        ("s()\n", "no `if`"),
    ],
)
def test_a_statement_that_would_lose_its_meaning_stays_in_its_if(text: str, reason: str) -> None:
    source, span = at(text, "s(")
    with pytest.raises(CannotEditError, match=reason):
        unguard(source, span)


def test_notebooks_and_broken_files_are_left_alone() -> None:
    for source in (NotebookSource("a.ipynb", b"f()\n"), Source("a.ipynb", b"f()\n"), Source("a.py", b"f(\n")):
        with pytest.raises(CannotEditError):
            delete_code(source, Span(0, 3))


SCRIPT = """import deepspeed
cfg = {
    "train_batch_size": 8,  # all
    # half
    "fp16": {"enabled": False},
    "zero_optimization": dict(stage=2),
    "other": OTHER,
}
cfg["fp16"]["enabled"] = True
cfg.update(steps_per_print=3)
cfg["train_batch_size"] = 9
engine = deepspeed.initialize(model=m, config=cfg)
"""


def config() -> tuple[Source, Document]:
    script = read_script(Source("train.py", SCRIPT.encode()))
    use = next(use for use in config_uses(read_deeds(script, None)) if isinstance(use.value, Table))
    assert isinstance(use.value, Table)
    return script.source, as_document(use.value, script)


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("train_batch_size",), 16, '["train_batch_size"] = 9', '["train_batch_size"] = 16'),
        (("fp16", "loss_scale"), 0, '{"enabled": False}', '{"enabled": False, "loss_scale": 0}'),
        (("fp16", "enabled"), None, '["enabled"] = True', '["enabled"] = None'),
        (("zero_optimization", "stage"), 3, "dict(stage=2)", "dict(stage=3)"),
        (("zero_optimization", "x"), "a", "dict(stage=2)", 'dict(stage=2, x="a")'),
        (("optimizer", "params", "lr"), 1e-5, "OTHER,\n", 'OTHER,\n    "optimizer": {"params": {"lr": 1e-05}},\n'),
        (("steps_per_print",), 5, "steps_per_print=3", "steps_per_print=5"),
    ],
)
def test_an_entry_of_a_dict_is_set_where_it_stands(
    path: tuple[str, ...], value: object, old: str, new: str
) -> None:
    source, document = config()
    assert after(source, set_key(document, path, value)) == SCRIPT.replace(old, new)


def test_an_entry_goes_with_the_statements_that_set_it() -> None:
    source, document = config()
    gone = ('    "train_batch_size": 8,  # all\n', 'cfg["train_batch_size"] = 9\n')
    expected = SCRIPT.replace(gone[0], "").replace(gone[1], "")
    assert after(source, delete_key(document, ("train_batch_size",))) == expected
    gone = ('    "fp16": {"enabled": False},\n', 'cfg["fp16"]["enabled"] = True\n')
    expected = SCRIPT.replace(gone[0], "").replace(gone[1], "")
    assert after(source, delete_key(document, ("fp16",))) == expected


def test_an_entry_is_renamed() -> None:
    source, document = config()
    edits = rename_key(document, ("zero_optimization", "stage"), "level")
    assert after(source, edits) == SCRIPT.replace("stage=2", "level=2")


def test_a_section_that_is_no_literal_is_left_alone() -> None:
    _, document = config()
    with pytest.raises(CannotEditError, match="dict literal"):
        set_key(document, ("other", "a"), 1)
