"""Edits of random scripts, and of real ones, change what was asked and nothing else."""

from __future__ import annotations

import ast
import io
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied, undoing
from dslint.fixes.python_code.edits import delete_code, insert_code, replace_code, set_arguments, unguard
from tests.fixes.python_texts import Mirror, RandomScript, dump

SEEDS = st.integers(0, 2**32)
VALUES = ("1", '"cpu"', "a + b", "a, b", "lambda: 0", "x if y else z", "(yield_)", "f(1)", "not a", "[1]", "-1")
SETTLED = settings(max_examples=110, deadline=None)


def script_of(random: Random) -> Source:
    while True:
        source = Source("train.py", RandomScript(random).text().encode())
        try:
            compile(source.text.removeprefix("\ufeff"), "train.py", "exec", flags=ast.PyCF_ONLY_AST)
        except SyntaxError:
            continue
        return source


def assert_says(source: Source, edits: list[Edit], expected: str) -> Source:
    """Holds the outcome against the tree; nothing outside of the edits changes, and they can be taken back."""
    after = applied(source, edits)
    assert dump(after) == expected, f"{source.data.decode()}\n=====\n{after.data.decode()}"
    assert applied(after, undoing(edits, source)).data == source.data
    return after


def comments(source: Source, *gone: ast.AST) -> list[str]:
    """The comments that have a line for themselves, in order; but for those inside of nodes."""
    inside = {line for node in gone for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}  # type: ignore[attr-defined]
    tokens = tokenize.generate_tokens(io.StringIO(source.text.removeprefix("\ufeff")).readline)
    return [
        token.string
        for token in tokens
        if token.type == tokenize.COMMENT and token.line.strip() == token.string and token.start[0] not in inside
    ]


def check_arguments(source: Source, random: Random) -> None:
    mirror = Mirror(source)
    calls = mirror.nodes(ast.Call)
    if not calls:
        return
    call = random.choice(calls)
    span = mirror.span(call)
    present = [keyword.arg for keyword in call.keywords if keyword.arg]
    names = random.sample([*present, "new_one", "new_two"], random.randint(1, min(3, len(present) + 2)))
    arguments = {name: random.choice((None, *VALUES)) for name in names}
    edits = set_arguments(source, span, arguments)
    gone = []
    for name, text in arguments.items():
        old = next((keyword for keyword in call.keywords if keyword.arg == name), None)
        value = None if text is None else ast.parse(f"({text})", mode="eval").body
        gone += [] if old is None else [old.value]
        if old is not None and value is None:
            call.keywords.remove(old)
        elif old is not None and value is not None:
            old.value = value
        elif value is not None:
            call.keywords.append(ast.keyword(name, value))
    after = assert_says(source, edits, mirror.dump)
    assert comments(after) == comments(source, *gone)


def check_deletion(source: Source, random: Random) -> None:
    mirror = Mirror(source)
    places = [
        node
        for node in mirror.nodes(ast.Expr, ast.Assign, ast.keyword, ast.Dict, ast.List, ast.Call, ast.With)
        if not isinstance(node, ast.Dict) or (node.keys and None not in node.keys)
    ]
    if not places:
        return
    node = random.choice(places)
    if isinstance(node, ast.Dict):
        index = random.randrange(len(node.keys))
        span = mirror.span(random.choice((node.keys[index], node.values[index])))
        gone = [node.keys[index], node.values[index]]
        del node.keys[index], node.values[index]
    elif isinstance(node, ast.List | ast.Call):
        items = node.elts if isinstance(node, ast.List) else node.args
        if not items:
            return
        index = random.randrange(len(items))
        span = mirror.span(items[index])
        gone = [items[index]]
        if isinstance(items[index], ast.GeneratorExp):
            return
        del items[index]
    elif isinstance(node, ast.With):
        if len(node.items) < 2:
            return
        index = random.randrange(len(node.items))
        span = mirror.span(node.items[index].context_expr)
        gone = [node.items[index].context_expr]
        del node.items[index]
    else:
        span = mirror.span(node)
        gone = [node]
        mirror.replace(node)
    after = assert_says(source, delete_code(source, span), mirror.dump)
    assert comments(after) == comments(source, *gone)


def check_replacement(source: Source, random: Random) -> None:
    mirror = Mirror(source)
    places = mirror.nodes(ast.Name, ast.Constant, ast.Call, ast.BinOp, ast.Tuple, ast.Attribute)
    places = [node for node in places if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]
    if not places:
        return
    node = random.choice(places)
    text = random.choice(VALUES)
    try:
        edits = replace_code(source, mirror.span(node), text)
    except CannotEditError:
        assert not isinstance(
            node, ast.Name
        )  # a part of a text, or of a pattern, has nothing that can be replaced
        return
    mirror.replace(node, ast.parse(f"({text})", mode="eval").body)
    assert_says(source, edits, mirror.dump)


def check_insertion(source: Source, random: Random) -> None:
    mirror = Mirror(source)
    statements = mirror.nodes(ast.Expr, ast.Assign, ast.Call, ast.For)
    if not statements:
        return
    node = random.choice(statements)
    after = random.random() < 0.5
    edits = insert_code(source, mirror.script.span(node), "new(1)", after)
    statement = mirror.statement(node)
    parent, field, _ = mirror.parents[statement]
    if isinstance(parent, ast.If) and field == "orelse" and isinstance(statement, ast.If):
        return  # an elif: it comes before, or after, the whole
    new = ast.parse("new(1)").body[0]
    mirror.replace(statement, *((statement, new) if after else (new, statement)))
    result = assert_says(source, edits, mirror.dump)
    assert comments(result) == comments(source)


def check_freeing(source: Source, random: Random) -> None:
    mirror = Mirror(source)
    guarded = [
        (guard, statement)
        for guard in mirror.nodes(ast.If)
        for statement in guard.body
        if not guard.orelse and isinstance(statement, ast.Expr | ast.Assign)
    ]
    if not guarded:
        return
    guard, statement = random.choice(guarded)
    body = list(guard.body)
    index = body.index(statement)
    try:
        edits = unguard(source, mirror.span(statement))
    except CannotEditError:
        return
    assert index in (0, len(body) - 1)
    guard.body.remove(statement)
    gone = [] if guard.body else [guard.test]
    if not guard.body:
        mirror.replace(guard, statement)
    else:
        mirror.replace(guard, *((statement, guard) if index == 0 else (guard, statement)))
    result = assert_says(source, edits, mirror.dump)
    assert sorted(comments(result)) == sorted(comments(source, *gone))


CHECKS = (check_arguments, check_deletion, check_replacement, check_insertion, check_freeing)


@SETTLED
@given(SEEDS)
def test_only_the_arguments_that_were_named_change(seed: int) -> None:
    random = Random(seed)
    check_arguments(script_of(random), random)


@SETTLED
@given(SEEDS)
def test_only_what_stands_there_is_taken_out(seed: int) -> None:
    random = Random(seed)
    check_deletion(script_of(random), random)


@SETTLED
@given(SEEDS)
def test_only_the_expression_is_replaced_whatever_stands_around_it(seed: int) -> None:
    random = Random(seed)
    check_replacement(script_of(random), random)


@SETTLED
@given(SEEDS)
def test_a_statement_comes_next_to_the_one_that_was_named(seed: int) -> None:
    random = Random(seed)
    check_insertion(script_of(random), random)


@SETTLED
@given(SEEDS)
def test_only_the_statement_leaves_its_if(seed: int) -> None:
    random = Random(seed)
    check_freeing(script_of(random), random)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(0, 300), st.integers(0, 60))
def test_no_place_gives_anything_but_edits_or_a_reason(seed: int, start: int, length: int) -> None:
    random = Random(seed)
    source = script_of(random)
    span = Span(min(start, len(source.data)), min(start + length, len(source.data)))
    for change in (
        lambda: replace_code(source, span, random.choice((*VALUES, "x = 1", "import a", "1 +"))),
        lambda: delete_code(source, span),
        lambda: insert_code(source, span, random.choice(("new()", "if x: y", "=")), random.random() < 0.5),
        lambda: set_arguments(source, span, {"lr": "1", "if": "2"}),
        lambda: unguard(source, span),
    ):
        try:
            after = applied(source, change())
        except CannotEditError:
            continue
        ast.parse(after.text.removeprefix("\ufeff"))


def installed_files() -> Iterator[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    yield from sorted(path for path in library.glob("*.py") if 2_000 < path.stat().st_size < 12_000)


def test_edits_of_real_files_change_what_was_asked() -> None:
    random = Random(7)
    for path in random.sample(list(installed_files()), 4):
        source = Source(str(path), path.read_bytes())
        for check in CHECKS:
            check(source, random)
