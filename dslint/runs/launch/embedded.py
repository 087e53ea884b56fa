"""Files that a script writes itself: `cat > ds_config.json <<EOF … EOF`."""

from __future__ import annotations

from dslint.documents.excerpt import ExcerptSource
from dslint.documents.shell_document import Command, HereDocument, ShellDocument, Word
from dslint.runs.launch.slurm import slurm_variables
from dslint.runs.launch.variables import Variables, own_folder


def embedded_files(document: ShellDocument) -> tuple[tuple[str, ExcerptSource], ...]:
    """The files that a script writes, each path with its text, in text order.

    Unknown variables stand in the text as `${NAME}`; a file whose path is unknown is left out.
    """
    if not any(command.here_documents for command in document.commands):
        return ()
    variables = Variables(document.commands, slurm_variables(document.directives), own_folder(document))
    found = []
    for index, command in enumerate(document.commands):
        variables.enter(command.blocks)
        if command.here_documents:
            target = _target(command, document.commands[index + 1 : index + 2])
            path = variables.text(target).text if target else None
            if isinstance(path, str) and path and path != "/dev/null":
                found.append((path, _text(document, variables, command.here_documents[-1])))
        variables.run(command)
    return tuple(found)


def _target(command: Command, following: tuple[Command, ...]) -> Word | None:
    """The file that takes the text: of `cat > FILE`, `tee FILE`, or `cat | tee FILE`."""
    if command.name not in ("cat", "tee"):
        return None
    writes = [redirection for redirection in command.redirections if redirection.operator in (">", ">|", ">>")]
    if command.name == "cat" and writes:
        return writes[-1].target
    if command.name == "tee":
        return _of_tee(command)
    if command.in_pipeline and following and following[0].name == "tee":
        return _of_tee(following[0])
    return None


def _of_tee(command: Command) -> Word | None:
    files = [word for word in command.words[1:] if not (word.literal or "").startswith("-")]
    return files[0] if files else None


def _text(document: ShellDocument, variables: Variables, here: HereDocument) -> ExcerptSource:
    text, _ = variables.filled(here.pieces)
    if here.strips_tabs:
        text = "\n".join(line.lstrip("\t") for line in text.split("\n"))
    source = document.source
    first_line = source.data.count(b"\n", 0, here.body.start) + 1
    return ExcerptSource(source.path, text.encode("utf-8", "replace"), source, first_line)
