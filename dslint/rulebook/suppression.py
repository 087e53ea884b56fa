"""Findings that somebody wants to be silent: by a comment in the file, or by the settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dslint.documents.comments import Comment, Kind, marked_comments
from dslint.documents.discover import SCRIPT_ENDINGS, SHELL_ENDINGS, YAML_ENDINGS
from dslint.documents.source import Source, Span
from dslint.rulebook.finding import Finding, Location
from dslint.rulebook.labels import Labelled, fits, unknown_label
from dslint.rulebook.own_rules import IGNORE_OF_UNKNOWN_RULE, IGNORE_WITHOUT_CODE, OWN_RULES, UNUSED_IGNORE

if TYPE_CHECKING:
    from dslint.documents.document import Document
    from dslint.rulebook.rule_text import RuleText
    from dslint.settings.settings import Settings

MARK = "dslint:"
LAST_LINE_FOR_FILES = 10
"""A comment about the whole file stands at its top, where people look."""

_INSTRUCTION = re.compile(r"[ \t]*(?P<word>ignore(?:-file)?)(?![\w-])(?:[ \t]*\[(?P<labels>[^\]]*)(?P<end>\]?))?")


@dataclass(frozen=True)
class Suppression:
    """One label in a comment.

    Attributes:
        label: a code, the beginning of one, or a name.
        span: where it stands.
        covers: the lines whose findings it silences; None for the whole file.
    """

    label: str
    span: Span
    covers: range | None


@dataclass(frozen=True)
class Mistake:
    """A comment that silences nothing, whatever the rules say.

    Attributes:
        rule: which of dslint's own rules it breaks.
        span: where.
        message: what is wrong, and what to do.
    """

    rule: RuleText
    span: Span
    message: str


@dataclass(frozen=True)
class Suppressions:
    """What the comments of one file say."""

    found: tuple[Suppression, ...]
    mistakes: tuple[Mistake, ...]

    @classmethod
    def of(cls, source: Source, kind: Kind) -> Suppressions:
        """Reads the comments of a file."""
        found: list[Suppression] = []
        mistakes: list[Mistake] = []
        for comment in marked_comments(source, kind, MARK):
            for one in _instruction(source, comment):
                if isinstance(one, Mistake):
                    mistakes.append(one)
                else:
                    found.append(one)
        return cls(tuple(found), tuple(mistakes))


@dataclass(frozen=True)
class Outcome:
    """What is left after suppression.

    Attributes:
        kept: the findings that nobody silences.
        suppressed: how many somebody does.
        complaints: findings about the comments themselves.
    """

    kept: tuple[Finding, ...]
    suppressed: int
    complaints: tuple[Finding, ...]


def apply(
    findings: Sequence[Finding],
    sources: Iterable[Source],
    settings: Settings | None,
    selected: Sequence[Labelled],
    known: Sequence[Labelled],
    undecided: Collection[str] = (),
) -> Outcome:
    """Takes out the findings that comments or settings silence, and says which comments are of no use.

    Args:
        findings: what the rules say, each once.
        sources: the files that took part in a run.
        settings: the project's settings; None where there are none.
        selected: the rules that were judged, dslint's own among them where they are wanted.
        known: all rules, whether selected or not.
        undecided: codes of rules that lacked a fact, so that nobody can tell whether their ignores are of use.
    """
    kept = list(findings)
    complaints: list[Finding] = []
    chosen = {rule.code for rule in selected}
    decided = chosen.difference(undecided)
    for source in {source.path: source for source in sources}.values():
        if MARK.encode() not in source.data:
            continue
        comments = Suppressions.of(source, kind_of(source.path))
        used, kept = _silence(kept, source, comments.found)
        mistakes = [*comments.mistakes, *_useless(comments.found, used, known, decided)]
        about = [_complaint(mistake, source) for mistake in mistakes if mistake.rule.code in chosen]
        complaints += _silence(about, source, comments.found)[1]
    suppressed = len(findings) - len(kept)
    if settings is not None:
        ignored = _IgnoredBySettings(settings)
        left = [finding for finding in kept if not ignored(finding)]
        suppressed += len(kept) - len(left)
        kept = left
        complaints = [finding for finding in complaints if not ignored(finding)]
    return Outcome(tuple(kept), suppressed, tuple(complaints))


def kind_of(path: str) -> Kind:
    """Which language's comments a file has, by its name."""
    name = path.lower()
    if name.endswith(SCRIPT_ENDINGS):
        return "python"
    if name.endswith(SHELL_ENDINGS):
        return "shell"
    return "yaml" if name.endswith(YAML_ENDINGS) else "config"


def _instruction(source: Source, comment: Comment) -> Iterator[Suppression | Mistake]:
    match = _INSTRUCTION.match(comment.text)
    if match is None:
        first = (comment.text.split() or ["nothing"])[0]
        message = f"`{first}` is nothing that dslint can be told in a comment: write `{MARK} ignore[CODE] reason`"
        yield Mistake(IGNORE_WITHOUT_CODE, comment.span, message)
        return
    is_for_file = match["word"] == "ignore-file"
    if not (match["labels"] or "").strip(" \t,") or not match["end"]:
        what = "doesn't close its bracket" if match["labels"] and not match["end"] else "names no rule"
        message = f"this comment {what}, and ignores nothing: write `{MARK} {match['word']}[CODE] reason`"
        yield Mistake(IGNORE_WITHOUT_CODE, comment.span, message)
        return
    if is_for_file and comment.line > LAST_LINE_FOR_FILES:
        message = (
            f"a comment about the whole file has no effect after line {LAST_LINE_FOR_FILES}: move it to the top"
        )
        yield Mistake(UNUSED_IGNORE, comment.span, message)
        return
    for label in re.finditer(r"[^,\s](?:[^,]*[^,\s])?", match["labels"]):
        start = comment.start + match.start("labels") + label.start()
        span = source.span(start, start + len(label.group()))
        yield Suppression(label.group(), span, None if is_for_file else comment.covers)


def _silence(
    findings: Iterable[Finding], source: Source, suppressions: Sequence[Suppression]
) -> tuple[set[Span], list[Finding]]:
    """The labels (by their places) that silence something, and the findings that none does."""
    used: set[Span] = set()
    kept = []
    for finding in findings:
        silenced_by = _silencing(finding, source, suppressions)
        used |= silenced_by
        if not silenced_by:
            kept.append(finding)
    return used, kept


def _silencing(finding: Finding, source: Source, suppressions: Iterable[Suppression]) -> set[Span]:
    if finding.location.source.path != source.path:
        return set()
    fitting = [one for one in suppressions if fits(one.label, finding)]
    if not fitting:
        return set()
    line = Source.place(source, finding.location.span.start).line  # in a notebook: of all its code, not of a cell
    return {one.span for one in fitting if one.covers is None or line in one.covers}


def _useless(
    suppressions: Iterable[Suppression],
    used: Collection[Span],
    known: Sequence[Labelled],
    decided: Collection[str],
) -> Iterator[Mistake]:
    """Labels that fit no rule, and labels that silence nothing although all their rules had their say."""
    own = {rule.code for rule in OWN_RULES}
    for one in suppressions:
        trouble = unknown_label(one.label, known)
        if trouble is not None:
            yield Mistake(IGNORE_OF_UNKNOWN_RULE, one.span, f"this ignores nothing: {trouble}")
            continue
        codes = {rule.code for rule in known if fits(one.label, rule)} - own
        if one.span not in used and codes and codes <= set(decided):
            where = "in this file" if one.covers is None else "here"
            yield Mistake(
                UNUSED_IGNORE, one.span, f"`{one.label}` says nothing {where}: delete it from this comment"
            )


def _complaint(mistake: Mistake, source: Source) -> Finding:
    rule = mistake.rule
    return Finding(rule.code, rule.name, rule.severity, mistake.message, Location(source, mistake.span))


class _IgnoredBySettings:
    """Tells whether settings silence a finding; parses a config again only if a dotted key is about its rule."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.spans: dict[tuple[str, str], list[Span]] = {}

    def __call__(self, finding: Finding) -> bool:
        return self.in_file(finding) or self.at_key(finding)

    def in_file(self, finding: Finding) -> bool:
        path = finding.location.source.path
        return any(
            _is_named(finding, entry.labels) and self.settings.matches(entry.pattern, path)
            for entry in self.settings.per_file_ignores
        )

    def at_key(self, finding: Finding) -> bool:
        start = finding.location.span.start
        return any(
            span.start <= start < span.end
            for entry in self.settings.ignore_keys
            if _is_named(finding, entry.labels)
            for span in self.spans_of(finding.location.source, entry.pattern)
        )

    def spans_of(self, source: Source, pattern: str) -> list[Span]:
        """Where the entries (keys with their values) stand that a dotted key means."""
        key = (source.path, pattern)
        if key not in self.spans:
            self.spans[key] = list(_entries(source, pattern))
        return self.spans[key]


def _is_named(finding: Finding, labels: Iterable[str]) -> bool:
    return any(label == "all" or fits(label, finding) for label in labels)


def _entries(source: Source, pattern: str) -> Iterator[Span]:
    names = [r"[^.]+" if name == "*" else re.escape(name) for name in pattern.split(".")]
    wanted = re.compile(r"\.".join(names))
    for document in _documents(source):
        for path, key in document.keys.items():
            if wanted.fullmatch(".".join(map(str, path))):
                yield key
                value = document.values.get(path)
                if value is not None:
                    yield value


def _documents(source: Source) -> Iterator[Document]:
    """A config as dotted keys see it; an Accelerate file also under DeepSpeed's own names."""
    kind = kind_of(source.path)
    if kind == "config":
        from dslint.documents.config_reader import read_config

        yield read_config(source)
    elif kind == "yaml":
        from dslint.documents.yaml_reader import read_yaml
        from dslint.runs.accelerate import as_config, is_accelerate

        document = read_yaml(source)
        yield document
        if is_accelerate(document):
            yield as_config(document)
