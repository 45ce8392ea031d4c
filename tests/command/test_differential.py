"""What the parser says a line runs is what bash, tracing itself, shows to have run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.command.parse import parse
from limpet.command.words import UNKNOWN

TIMEOUT_S = 20
_UNTRACED = ("for", "case", "select", "[[", "((", "[")
"""What bash traces, but is no simple command; of a test, the parser notes no words."""
_BY_WORDS = ("command", "builtin", "exec", "env", "nice", "timeout", "xargs", "find")
"""Wrappers that run their words themselves, so that no shell traces them."""
_ASSIGNMENT = re.compile(r"\w+=")


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    branches: bool = False
    """True if some of it may not be run."""


def traced(script: str) -> Counter[tuple[str, ...]]:
    """Run a harmless script, and return the words of each command that any bash in it ran."""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryDirectory() as directory, open(read_end, "rb") as trace:
        shell = subprocess.Popen(
            ["bash", "--norc", "-c", script],
            cwd=directory,
            env={
                "PATH": os.environ["PATH"],
                "SHELLOPTS": "xtrace",
                "BASH_XTRACEFD": str(write_end),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[write_end],
        )
        os.close(write_end)
        lines = trace.read().decode().splitlines()  # up to the end of the last that holds it
        assert shell.wait(TIMEOUT_S) in (0, 1)
    found = [shlex.split(re.sub(r"\A\++ ", "", line)) for line in lines]
    return Counter(
        tuple(re.sub(r"/dev/fd/\d+", UNKNOWN, word) for word in words)
        for words in found
        if words[0] not in _UNTRACED and not _ASSIGNMENT.match(words[0])
    )


def predicted(script: str) -> Counter[tuple[str, ...]]:
    """Return the words of each command that the parser finds, as far as bash would trace them."""
    line = parse(script)
    assert line.gaps == []
    return Counter(
        tuple(word.value for word in command.words)
        for command in line.commands
        if command.words
        and command.name not in ("time", "[[", "[")
        and not command.function  # read where it is defined; what counts is each call
        and not (command.caller is not None and command.caller.name in _BY_WORDS)
    )


tags = st.integers(0, 99).map(lambda number: f"t{number}")


@st.composite
def simple(draw: st.DrawFn) -> Piece:
    """One simple command, in one of many spellings."""
    form = draw(
        st.sampled_from(
            [
                ": {a}",
                "true {a} {b}",
                "echo {a} >&2",
                "echo {a} > {b}",
                "> {b} echo {a} 2>&1",
                "echo 2>/dev/null {a} >&2 {b}",
                ": '{a} x' \"{b}\"",
                ": {a}\\ {b}",
                "\\true {a}",
                "'true' {a}''{b}",
                ': "it\'s" {a}',
                ": {{{a},{b}}}x",
                ": {{1..3}}{a}",
                "X={a} : {b}",
                "X={a}",
                ": ${{unset:-{a}}}",
                ': "${{unset:-{a} {b}}}"',
                "{{ x={a}; : $x \"$x\" ${{x}}y '$x'; }}",
                "{{ x='{a} {b}'; : $x \"$x\"; }}",
                "{{ x=({a} {b}); : ${{x[@]}}; }}",
                ": $(echo {a})",
                ": `echo {a}`",
                ': "$(: {b}; echo {a})"',
                ": $(echo $(echo {a}))",
                ": x$(: {b}; echo {a})y",
                "x=$(echo {a}) true {b}",
                "x=$((1 + $(: {a}; echo 2)))",
                ": <(: {a})",
                "cat <(echo {a}) > {b}",
                "cat <<< {a} > /dev/null",
                'cat <<< "$(echo {a})" > /dev/null',
                "echo {a} | cat > {b}",
                "echo {a} | tee >(cat > /dev/null) > /dev/null",
                "command : {a}",
                "builtin echo {a} >&2",
                "env true {a}",
                "env X={b} true {a}",
                "nice -n 1 true {a}",
                "timeout 20 true {a}",
                "(exec true {a})",
                "time : {a}",
                "echo {a} | xargs true {b}",
                "echo {a} | xargs -I% true %",
                "find . -maxdepth 0 -exec true {a} \\;",
                "(trap ': {a}' EXIT; : {b})",
                "eval : {a}",
                "{{ set -- {a} {b}; : $2 $1; }}",
                "[ -n {a} ]",
                "export X={a}",
                "exec 3<>{a}",
                "read x <<< {a}",
                ": '$(echo {a})' \"\\$(echo {b})\"",
                "echo '; : {a}' >&2",
            ]
        )
    )
    return Piece(form.format(a=draw(tags), b=draw(tags)))


def compound(inner: st.SearchStrategy[Piece]) -> st.SearchStrategy[Piece]:
    """Statements on one line, made of others."""
    return st.one_of(_straight(inner), _straight(inner), _wrapped(inner), _branching(inner))


@st.composite
def _straight(draw: st.DrawFn, inner: st.SearchStrategy[Piece]) -> Piece:
    """All of it is run."""
    form = draw(
        st.sampled_from(
            [
                "{one} && {two}",
                "{one}; {two}",
                "{{ {one}; {two}; }}",
                "( {one}; {two} )",
                "{{ {one} & {two}; }}",
                "{{ {one}; }} | {{ {two}; }}",
                "( {one} ) |& ( {two} )",
                "{{ true {tag} | {{ {one}; }} | ( {two} ); }}",
                "{{ {one}; {two}; }} > {tag}",
                "x=$( {{ {one}; {two}; }} >&2 ); true {tag}",
                'x="$( {one} )"; {two}',
                "for i in {tag} x; do : $i; {one}; done",
                "for i in $(echo {tag}); do : $i; {one}; {two}; done",
                "{{ f{tag}() {{ {one}; : $1; }}; f{tag} {tag}; }}",
                "{{ function f{tag} {{ {one}; }}; {two}; f{tag} a; f{tag} b; }}",
                "{{ f{tag}() ( {one} ); f{tag}; }}",
                "[[ -n {tag} ]] && {one}",
                "(( 1 )) && {one}",
                "{one} && : <({two})",
            ]
        )
    )
    one, two = draw(inner), draw(inner)
    text = form.format(one=one.text, two=two.text, tag=draw(tags))
    return Piece(text, one.branches or two.branches)


@st.composite
def _wrapped(draw: st.DrawFn, inner: st.SearchStrategy[Piece]) -> Piece:
    """A script that another shell reads."""
    form = draw(
        st.sampled_from(
            [
                "bash -c {script}",
                "bash -ec {script} name",
                "env bash -c {script}",
                "env X=1 timeout 20 bash -c {script}",
                "eval {script}",
                "command eval {script}",
                "bash <<< {script}",
                "echo {script} | bash",
                "printf %s {script} | bash -s",
                "source <(echo {script})",
                "(trap {script} EXIT)",
                '{{ s={script}; eval "$s"; }}',
                '{{ s={script}; bash -c "$s"; }}',
            ]
        )
    )
    one = draw(inner)
    return Piece(form.format(script=shlex.quote(one.text)), one.branches)


@st.composite
def _branching(draw: st.DrawFn, inner: st.SearchStrategy[Piece]) -> Piece:
    """Some of it may not be run."""
    form = draw(
        st.sampled_from(
            [
                "if {one}; then {two}; else : {tag}; fi",
                "if ! ( {one} ); then : {tag}; elif {two}; then true {tag}; fi",
                "{one} || {two}",
                "{{ ! ( {one} ) && {two}; }}",
                "while {one}; do {two}; break; done",
                "until {one}; do {two}; done",
                "case {tag} in t*) {one};; *) {two};; esac",
                "case {tag} in x|y) {one};& z) {two};; esac",
                "false {tag} && {one}",
                "(exit 3) || {one} && {two}",
                "{{ f{tag}() {{ {one}; }}; {two}; }}",
            ]
        )
    )
    one, two = draw(inner), draw(inner)
    text = form.format(one=one.text, two=two.text, tag=draw(tags))
    return Piece(text, branches=True)


inline = st.recursive(simple(), compound, max_leaves=6)


@st.composite
def with_body(draw: st.DrawFn) -> Piece:
    """A statement of several lines, with a here-document or two."""
    form = draw(
        st.sampled_from(
            [
                "cat > /dev/null <<E\nx $( {one} ) 'y\nE",
                'cat > /dev/null <<E && {two}\n"`: {tag}`" $( {one} )\nE',
                "cat <<'E' > /dev/null\n$( {one} ) `: {tag}`\nE",
                "cat <<'E' | bash\n{one}\n{two}\nE",
                "bash -s {tag} <<'E'\n: $1\n{one}\nE",
                "bash <<-'E'\n\t{one}\n\tE",
                "cat <<A <<'B' > /dev/null; {two}\n$( {one} )\nA\n$(: {tag})\nB",
                "cat <<'A' > {tag} && cat <<B >&2\n$(: {tag})\nA\n$( {one} )\nB",
                ': "$(cat <<E\n{tag}\nE\n)"; {one}',
                "{{\n{one}\n{two}\n}} > {tag}",
                "time {{ {one}; {two}; }}",
                "{{ {one}; }} | {{ {two}; }} | true {tag}\ntrue {tag} && {one}",
                "for i in {tag} x\ndo\n  : $i\n  {one}\ndone",
                "f{tag}() {{\n  {one}\n}}\nf{tag} {tag}",
                ": {tag} \\\n  && {one}",
                ": {tag} &&\n  {one}",
                "# {tag}\n{one} # : {tag}",
            ]
        )
    )
    one, two = draw(inline), draw(inline)
    text = form.format(one=one.text, two=two.text, tag=draw(tags))
    return Piece(text, one.branches or two.branches)


scripts = st.lists(st.one_of(inline, with_body()), min_size=1, max_size=4)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(scripts)
def test_what_bash_runs_is_what_the_parser_says(pieces: list[Piece]) -> None:
    script = "\n".join(piece.text for piece in pieces)
    did_run, could_run = traced(script), predicted(script)
    assert did_run.keys() <= could_run.keys()
    if not any(piece.branches for piece in pieces):
        assert did_run == could_run


def test_the_trace_shows_what_ran() -> None:
    """The test above would prove little if nothing were traced."""
    trace = traced(": a; false && : b; bash -c ': c | : d'; env true e")
    assert trace.keys() == {
        (":", "a"),
        ("false",),
        ("bash", "-c", ": c | : d"),
        (":", "c"),
        (":", "d"),
        ("env", "true", "e"),
    }


@pytest.mark.parametrize("name", ["a b", "it's", "x;y", "é"])
def test_bash_itself_creates_the_file_that_the_parser_names(name: str, tmp_path: Path) -> None:
    script = f"echo x > {shlex.quote(name)}"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, timeout=TIMEOUT_S)
    target = parse(script).commands[0].redirects[0].target.value
    assert [path.name for path in tmp_path.iterdir()] == [target.encode("latin-1").decode()]
