from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.documents.yaml_reader import read_yaml


@pytest.fixture(autouse=True, params=["CSafeLoader", "SafeLoader"])
def _with_either_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with PyYAML's parser in C, and as if PyYAML were built without it."""
    if request.param == "SafeLoader":
        monkeypatch.delattr(yaml, "CSafeLoader")


def read(text: str) -> Document:
    return read_yaml(Source("config.yaml", text.encode("utf-8")))


def readable(text: str) -> Document:
    document = read(text)
    assert document.problem is None, document.problem
    return document


def shown(document: Document, path: NodePath) -> str:
    return document.source.slice(document.values[path])


def paths(value: Any, path: NodePath = ()) -> set[NodePath]:
    """The paths of a value and of all that is in it."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return {path}.union(*(paths(child, (*path, key)) for key, child in children))


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
words = st.sampled_from(
    ["", "on", "No", "null", "~", "1e5", "0x1f", "1:30", "<<", "=", " x ", "a: b", "# c", "é𝒳"]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    texts,
    words,
    st.dates(),
    st.binary(max_size=9),
)
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(texts, words, st.integers()), inner, max_size=4),
    ),
    max_leaves=25,
)
styles = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([True, False, None]),
        "default_style": st.sampled_from([None, '"', "'"]),
        "allow_unicode": st.booleans(),
        "indent": st.sampled_from([None, 4]),
        "width": st.sampled_from([20, 80, 10_000]),
        "explicit_start": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
    }
)


@settings(max_examples=150, deadline=None)
@given(value=data, style=styles)
def test_a_dumped_value_is_read_back_with_a_span_for_every_path(value: Any, style: dict[str, Any]) -> None:
    text = yaml.dump(value, Dumper=NoAliases, **style)
    document = readable(text)
    assert document.value == yaml.safe_load(text)
    assert set(document.values) == paths(document.value)
    assert set(document.keys) == {path for path in paths(document.value) if path and is_key(document, path)}
    assert not document.duplicates


def is_key(document: Document, path: NodePath) -> bool:
    container = document.value
    for element in path[:-1]:
        container = container[element]
    return isinstance(container, dict)


@settings(max_examples=150, deadline=None)
@given(value=data, style=styles)
def test_the_text_under_a_span_is_the_text_of_the_value(value: Any, style: dict[str, Any]) -> None:
    document = readable(yaml.dump(value, Dumper=NoAliases, **style))
    for path, span in document.values.items():
        expected = document.value
        for element in path:
            expected = expected[element]
        assert yaml.safe_load(indented(document, span)) == expected
    for path, span in document.keys.items():
        assert yaml.safe_load(document.source.slice(span)) == path[-1]


def indented(document: Document, span: Span) -> str:
    """The text of a span at its own column, so that the lines of a block stay below each other."""
    return " " * (document.source.place(span.start).column - 1) + document.source.slice(span)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("ab:-?&*!|>'\"#%@{}[],<= \n\t1~é\x07"), max_size=40))
def test_any_text_is_read_as_the_safe_loader_does_or_refused(text: str) -> None:
    document = read(text)
    try:
        expected = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception:
        return  # it also refuses files of several documents, of which the first is read here
    if document.problem is None:
        assert document.value == expected or expected != expected
    else:
        assert "inside its own anchor" in document.problem.message


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60))
def test_spans_of_problems_lie_in_the_file(content: bytes) -> None:
    content = content.decode("utf-8", "ignore").encode("utf-8")
    problem = read_yaml(Source("x.yaml", content)).problem
    if problem is not None:
        assert 0 <= problem.span.start <= problem.span.end <= len(content)


ACCELERATE = """\
compute_environment: LOCAL_MACHINE  # comment
deepspeed_config:
  deepspeed_multinode_launcher: standard
  gradient_accumulation_steps: 1
  offload_optimizer_device: 'none'
  zero3_init_flag: true
  zero_stage: 3

# a comment between
fsdp_config: {}
list:
- one
- two: 2
  three: "3"
empty:
last: |
  several
  lines

"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("compute_environment",), "LOCAL_MACHINE"),
        (("deepspeed_config", "zero_stage"), "3"),
        (("deepspeed_config", "offload_optimizer_device"), "'none'"),
        (("deepspeed_config", "zero3_init_flag"), "true"),
        (("fsdp_config",), "{}"),
        (("list",), '- one\n- two: 2\n  three: "3"'),
        (("list", 0), "one"),
        (("list", 1), 'two: 2\n  three: "3"'),
        (("list", 1, "three"), '"3"'),
        (("empty",), ""),
        (("last",), "|\n  several\n  lines"),
    ],
)
def test_a_span_holds_the_value_without_what_stands_around_it(path: NodePath, text: str) -> None:
    assert shown(readable(ACCELERATE), path) == text


def test_a_block_ends_before_the_comment_behind_it() -> None:
    assert shown(readable(ACCELERATE), ("deepspeed_config",)).endswith("zero_stage: 3")


def test_the_span_of_a_key_holds_its_quotes() -> None:
    document = readable("'a b': 1\n\"c\": 2\n? d\n: 3\n")
    assert [document.source.slice(document.keys[(key,)]) for key in ("a b", "c", "d")] == [
        "'a b'",
        '"c"',
        "d",
    ]


@pytest.mark.parametrize("start", ["", "\ufeff", "# é𝒳\n", "\r\n", "\ufeff# é\r\n"])
def test_spans_count_bytes_of_the_file(start: str) -> None:
    document = readable(start + "é: 'ü𝒳'\r\nb: [ü, 2]\r\n")
    assert document.value == {"é": "ü𝒳", "b": ["ü", 2]}
    assert shown(document, ("é",)) == "'ü𝒳'"
    assert shown(document, ("b",)) == "[ü, 2]"
    assert shown(document, ("b", 1)) == "2"


SAME_AS_PYYAML = [
    "a: 1e5\nb: 1.0e+5\nc: 0o7\nd: 010\ne: 1_000\nf: 1:30\n",
    "a: yes\nb: off\nc: 'yes'\nd: ~\ne: null\nf:\n",
    "a: 2024-01-31\nb: 2024-01-31 10:20:30\nc: !!str 2024-01-31\n",
    "base: &base {x: 1, y: 2}\nderived:\n  <<: *base\n  y: 3\n",
    "a: &a {x: 1}\nb: &b {x: 2, z: 2}\nc:\n  w: 0\n  <<: [*a, *b]\n",
    "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, <<: {z: 3, w: 4}}\n",
    "'<<': 1\n",
    "a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]\n",
    "- &k key\n- {*k : 1}\n",
    "a: !!set {x, y}\nb: !!omap [x: 1, y: 2]\nc: !!pairs [x: 1, x: 2]\n",
    "a: !!binary aGVsbG8=\nb: !!int '3'\nc: !!float 3\nd: !!bool 'yes'\ne: !!str 3\nf: !!null ''\n",
    "a: ! 12\nb: !!seq [1]\nc: !!map {d: 1}\n",
    "1: a\ntrue: b\n1.5: c\nnull: d\n2024-01-31: e\n",
    "=: 1\n",
    "a: 1\na: {b: 2}\na: {c: 3}\n",
    "a: |\n  x\n  y\nb: >-\n  x\n  y\nc: |+\n  x\n\nd: 'a\n\n  b'\ne: plain\n  goes on\n",
    "%YAML 1.1\n---\na: 1\n...\n",
    "{a: 1, b, c: [1, 2,],}",
    "[a, b: 1, ? c]",
    "just text",
    "",
    "# only a comment\n",
    "---\n",
    "\ufeffa: 1\n",
    "a: .inf\nb: -.INF\n",
]


@pytest.mark.parametrize("text", SAME_AS_PYYAML)
def test_values_are_those_of_the_safe_loader(text: str) -> None:
    assert readable(text).value == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("{<<: [{stage: 1}, {stage: 2, lr: 3}]}", {"stage": 1, "lr": 3}),
        ("{<<: [{s: 1}, {s: 2}]}", {"s": 1}),
        ("{stage: 0, <<: [{stage: 1}, {stage: 2}]}", {"stage": 0}),
        ("{<<: {stage: 1, stage: 2}}", {"stage": 2}),
    ],
)
def test_of_merged_mappings_that_disagree_the_first_counts(text: str, merged: dict[str, int]) -> None:
    assert readable(text).value == merged


def test_dates_stay_dates() -> None:
    assert readable("a: 2024-01-31").value == {"a": datetime.date(2024, 1, 31)}


def test_of_several_documents_the_first_is_read() -> None:
    assert readable("a: 1\n---\nb: 2\n--- 3\n").value == {"a": 1}


def test_a_file_without_a_document_is_none_and_no_problem() -> None:
    document = readable("# nothing\n")
    assert (document.value, dict(document.values)) == (None, {(): Span(0, 0)})


def test_duplicate_keys_are_recorded_and_the_last_counts() -> None:
    document = readable("a: {b: 1, c: {x: 1}, c: {y: 2}}\n")
    (duplicate,) = document.duplicates
    assert document.value == {"a": {"b": 1, "c": {"y": 2}}}
    assert duplicate.path == ("a", "c")
    assert (duplicate.first, duplicate.second) == (Span(10, 11), Span(21, 22))
    assert ("a", "c", "x") not in document.values


def test_a_key_that_stands_three_times_is_two_duplicates() -> None:
    assert len(readable("a: 1\na: 2\na: 3\n").duplicates) == 2


def test_a_key_that_overrides_a_merged_one_is_no_duplicate() -> None:
    document = readable("a: &a {x: 1}\nb: {<<: *a, x: 2}\n")
    assert not document.duplicates
    assert shown(document, ("b", "x")) == "2"


def test_an_alias_has_its_own_span_and_its_content_that_of_the_anchor() -> None:
    document = readable("a: &x {b: 1}\nc: *x\n")
    assert shown(document, ("c",)) == "*x"
    assert document.values[("c", "b")] == document.values[("a", "b")]


def test_a_merged_key_has_the_span_of_the_anchors_text() -> None:
    document = readable("a: &x {b: 1}\nc:\n  <<: *x\n")
    assert document.keys[("c", "b")] == document.keys[("a", "b")]


def test_keys_that_are_no_text_have_their_written_text_in_paths() -> None:
    assert set(readable("1.50: a\n~: b\n7: c\n").keys) == {("1.50",), ("~",), (7,)}


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a: [1, 2", "not valid YAML: .*flow sequence", (1, 9)),
        ("a: 1\n b: 2\n", "not valid YAML: mapping values are not allowed", (2, 3)),
        ("a: 1\n\tb: 2\n", "not valid YAML", (2, 1)),
        ("a: 'x", "not valid YAML: found unexpected end of stream", (1, 6)),
        ("[a]\nb\n", "not valid YAML: .*<document start>", (2, 1)),
        ("a: é\x07\n", r"not valid YAML: the character U\+0007 is not allowed", (1, 5)),
        ("a: @x\n", "not valid YAML: found character", (1, 4)),
        ("é: *x\n", r"the alias \*x has no anchor &x before it", (1, 4)),
        ("a: &x 1\nb: &x 2\n", "the anchor &x is set twice", (2, 4)),
        ("a: &x [*x]\n", "inside its own anchor", (1, 8)),
        ("a: {{ stage }}\n", "a mapping can't be a key .a template's", (1, 5)),
        ("? [a]\n: 1\n", "a list can't be a key", (1, 3)),
        ("a: {<<: 3}\n", "<< merges a mapping or a list of mappings, not a single value", (1, 9)),
        ("a: {<<: [{}, [1]]}\n", "not a list", (1, 14)),
        ("a: [<<]\n", "the tag !!merge is not one of plain data", (1, 5)),
        ("a: !Ref b\n", "the tag !Ref is not one of plain data", (1, 4)),
        ("a: !Sub {b: c}\n", "the tag !Sub is not one of plain data", (1, 4)),
        ("a: !!int b\n", "not a value that the tag !!int allows", (1, 4)),
        ("a: !!bool b\n", "not a value that the tag !!bool allows", (1, 4)),
        ("a: !!timestamp b\n", "not a value that the tag !!timestamp allows", (1, 4)),
        ("a: 2024-13-45\n", "not a value that the tag !!timestamp allows", (1, 4)),
        ("a: !!map [1]\n", "not a value that the tag !!map allows", (1, 4)),
        ("a: !!set [1]\n", "not a value that the tag !!set allows", (1, 4)),
        ("a: " + "9" * 5000, "not a value that the tag !!int allows", (1, 4)),
    ],
)
def test_a_problem_has_a_message_and_a_place(text: str, message: str, place: tuple[int, int]) -> None:
    document = read(text)
    assert document.problem is not None
    found = document.source.place(document.problem.span.start)
    assert (found.line, found.column) == place
    with pytest.raises(ValueError, match=message):
        raise ValueError(document.problem.message)
    assert (document.value, document.keys, document.values) == (None, {}, {})


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['exit 3']",
        "a: !!python/object/new:os.system [x]",
        "a: !!python/name:os.system",
        "a: [!!python/module:os '']",
        "!!python/tuple [1]",
    ],
)
def test_tags_that_ask_for_python_objects_are_refused(text: str) -> None:
    problem = read(text).problem
    assert problem is not None
    assert "asks for a Python object: only plain data is read, nothing is run" in problem.message


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], y{n}: 1}}\n" for n in range(1, 60)
)


@pytest.mark.parametrize("text", [BOMB, MERGE_BOMB], ids=["lists", "merge keys"])
def test_an_alias_bomb_is_refused(text: str) -> None:
    problem = read(text).problem
    assert problem is not None
    assert problem.message == "more than 100,000 keys and values, with what its aliases repeat: no config"


def test_a_file_with_too_many_values_is_refused() -> None:
    problem = read("[" + "1," * 200_000 + "]").problem
    assert problem is not None
    assert problem.message == "more than 100,000 keys and values: no config"


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 100_000, "[" * 201 + "]" * 201],
    ids=["open lists", "block lists", "mappings", "keys", "closed lists"],
)
def test_deep_nesting_is_refused(text: str) -> None:
    problem = read(text).problem
    assert problem is not None
    assert "nested more than 200 deep" in problem.message or "maximum nesting depth" in problem.message


def test_nesting_through_aliases_counts_too() -> None:
    text = "a: &a " + "[" * 150 + "]" * 150 + "\nb: " + "[" * 100 + "*a" + "]" * 100
    problem = read(text).problem
    assert problem is not None
    assert "nested more than 200 deep" in problem.message


def test_nesting_within_the_limit_is_read() -> None:
    assert readable("[" * 200 + "]" * 200).values[(0,) * 199] == Span(199, 201)


def test_importing_the_module_does_not_import_yaml() -> None:
    code = "import sys, dslint.documents.yaml_reader; print('yaml' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
