"""Shell scripts are read into commands, whatever stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.shell_document import Command, ShellDocument
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source

JOINED_PIECES = (
    "<<EOF|<<'E'|<<-E|\nEOF\n|\n| |\"|'|$(|)|${|}|a|E\n|;|&|if |then |fi\n|case |esac|in |((|))|$((|[[|]]|=|(|\\\n|\\"
    "|`|#|é|for |do |done |<<|>|function |{|\t|\r\n|<<<|:-|A=|A+=(|$A|${A[@]}|python |&&|export |\r|\x00"
)
PIECES = JOINED_PIECES.split("|")


def read(text: str) -> ShellDocument:
    return read_shell(Source("run.sh", text.encode()))


def words(command: Command) -> list[str | None]:
    return [word.literal for word in command.words]


def names(text: str) -> list[str | None]:
    return [command.name for command in read(text).commands]


def test_a_command_over_several_lines_is_one() -> None:
    (command,) = read("deepspeed --num_gpus 8 \\\n    train.py \\\n    --lr 1\n").commands
    assert words(command) == ["deepspeed", "--num_gpus", "8", "train.py", "--lr", "1"]


def test_windows_line_ends_do_not_end_up_in_words() -> None:
    first, second = read("python a.py \\\r\n  --x 1\r\necho b\r\n").commands
    assert words(first) == ["python", "a.py", "--x", "1"]
    assert words(second) == ["echo", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a'b c'\"d e\"f", "ab cd ef"),
        (r"a\ b", "a b"),
        (r'"a\"b\n"', 'a"b\\n'),
        ("$'a\\tb'", "a\tb"),
        ("''", ""),
        ("größe", "größe"),
        (r"\ü", "ü"),
        ("a#b", "a#b"),
        ("1,2@host:3", "1,2@host:3"),
    ],
)
def test_quotes_and_escapes(text: str, expected: str) -> None:
    (command,) = read("echo " + text).commands
    assert words(command) == ["echo", expected]


def test_what_is_expanded_is_told_apart() -> None:
    (command,) = read('x a${N:-8}b "$@" ${A[@]} $((1 + 2)) ${#A} ${P%.py}').commands
    pieces = [piece for word in command.words[1:] for piece in word.pieces]
    assert [(p.kind, p.text, p.operator, p.index, p.quoted) for p in pieces] == [
        ("literal", "a", "", None, False),
        ("variable", "N", ":-", None, False),
        ("literal", "b", "", None, False),
        ("variable", "@", "", None, True),
        ("variable", "A", "", "@", False),
        ("arithmetic", "1 + 2", "", None, False),
        ("variable", "A", "#", None, False),
        ("variable", "P", "%.py", None, False),
    ]
    assert [piece.text for piece in pieces[1].operand] == ["8"]


def test_assignments_alone_in_front_and_by_export() -> None:
    alone, front, export, array = read("A=1\nB='x y' cmd\nexport C=3 D\nE=( a 'b c' # no\n  d )\n").commands
    assert [(a.name, a.value and a.value.literal) for a in alone.assignments] == [("A", "1")]
    assert ([a.name for a in front.assignments], front.name) == (["B"], "cmd")
    assert [(a.name, a.value is not None, a.exported) for a in export.assignments] == [
        ("C", True, True),
        ("D", False, True),
    ]
    assert [word.literal for word in array.assignments[0].array or ()] == ["a", "b c", "d"]


def test_blocks_that_a_command_stands_in() -> None:
    text = """
if [ -z "$A" ]; then one; elif x; then two; else three; fi
for i in a b; do four; done
while read -r line; do five; done < file
f() { six; }
function g { seven; }
( eight )
case $A in a|b) nine ;; *) ten ;; esac
test -d x && eleven
twelve
"""
    found = {command.name: command for command in read(text).commands}
    kinds = {name: [block.kind for block in command.blocks] for name, command in found.items()}
    assert [kinds[name] for name in ("one", "two", "three")] == [["if"]] * 3
    assert len({found[name].blocks[0].branch for name in ("one", "two", "three")}) == 3
    assert [kinds[name] for name in ("four", "five")] == [["loop"]] * 2
    assert [kinds[name] for name in ("six", "seven")] == [["function"]] * 2
    assert (kinds["eight"], kinds["nine"], kinds["ten"]) == (["subshell"], ["case"], ["case"])
    assert (kinds["eleven"], kinds["twelve"]) == (["list"], [])


def test_pipelines_background_and_redirections() -> None:
    first, second, third = read("python a.py 2>&1 | tee log\npython b.py > out &\n").commands
    assert (first.in_pipeline, second.in_pipeline, first.in_background) == (True, True, False)
    assert third.in_background
    assert [(r.operator, r.target.literal) for r in third.redirections] == [(">", "out")]


@pytest.mark.parametrize(
    "opening", ["cat > f <<EOF", "cat <<'EOF' > f", "cat <<-EOF >f", 'tee f <<"EOF" >/dev/null']
)
def test_here_documents(opening: str) -> None:
    source = Source("run.sh", f'{opening}\n{{"a": 1}}\nEOF\necho after\n'.encode())
    command, after = read_shell(source).commands
    (here,) = command.here_documents
    assert source.slice(here.body) == '{"a": 1}\n'
    assert here.quoted == ("'" in opening or '"' in opening)
    assert words(after) == ["echo", "after"]


def test_two_here_documents_of_one_line() -> None:
    source = Source("run.sh", b"a <<X; b <<Y\n1\nX\n2\nY\nc\n")
    commands = read_shell(source).commands
    assert [[source.slice(h.body) for h in command.here_documents] for command in commands] == [
        ["1\n"],
        ["2\n"],
        [],
    ]


def test_commands_inside_substitutions_follow_the_one_around_them() -> None:
    assert names('x=$(one "$(two)")\nthree\n') == [None, "one", "two", "three"]


def test_slurm_lines_count_above_the_first_command_only() -> None:
    document = read(
        "#!/bin/bash\n#SBATCH --nodes=2  # two\n#SBATCH -n 16\n#SBATCH --exclusive\necho\n#SBATCH --nodes=3\n"
    )
    assert [(d.option, d.value) for d in document.directives] == [
        ("--nodes", "2"),
        ("-n", "16"),
        ("--exclusive", None),
    ]


def test_comments_keep_their_place() -> None:
    source = Source("run.sh", "echo é # eins\r\n# zwei".encode())
    assert [source.slice(comment.span) for comment in read_shell(source).comments] == ["# eins", "# zwei"]


@pytest.mark.parametrize(
    "broken", ["echo 'open", 'echo "open', "echo $(open", "echo ${open", "fi done }", "echo `open"]
)
def test_a_broken_line_loses_itself_only(broken: str) -> None:
    assert "python" in names(f"{broken}\npython a.py\n")


def test_a_binary_file_is_a_problem() -> None:
    document = read_shell(Source("x", b"\x7fELF\0\0\1"))
    assert (document.problem is not None, document.commands) == (True, ())


@pytest.mark.parametrize(
    "text", ["(", "$(", '"$(', "${a:-", "if a; then ", "case a in ", "f() {\n", "`", "<", ")", "a |", "[[ a "]
)
def test_deep_nesting_is_no_trouble(text: str) -> None:
    read(text * 5_000)


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_read(data: bytes) -> None:
    read_shell(Source("x", data))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=400)
def test_any_pieces_of_shell_are_read_and_spans_lie_within(text: str) -> None:
    document = read(text)
    size = len(document.source.data)
    for command in document.commands:
        assert 0 <= command.span.start < command.span.end <= size
        assert all(command.span.start <= w.span.start <= w.span.end <= command.span.end for w in command.words)
        assert all(0 <= h.body.start <= h.body.end <= size for h in command.here_documents)
