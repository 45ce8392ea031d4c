"""All that a line would run is found, wherever it stands; what is data is not."""

from __future__ import annotations

import pytest

from limpet.command.model import Command
from limpet.command.parse import parse


def ran(line: str) -> list[str]:
    """Return the simple commands of a line, each as its words."""
    return [" ".join(word.value for word in command.words) for command in parse(line).commands]


def only(line: str) -> Command:
    """Return the one command of a line that is understood."""
    found = parse(line)
    assert found.gaps == []
    assert len(found.commands) == 1
    return found.commands[0]


def named(line: str, name: str) -> Command:
    """Return the command of a line that has a name."""
    return next(command for command in parse(line).commands if command.name == name)


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a", ["a"]),
        ("  a  b\t", ["a b"]),
        ("a; b", ["a", "b"]),
        ("a;b;", ["a", "b"]),
        ("a\nb\n\nc", ["a", "b", "c"]),
        ("a && b", ["a", "b"]),
        ("a || b", ["a", "b"]),
        ("a & b", ["a", "b"]),
        ("a &", ["a"]),
        ("a | b", ["a", "b"]),
        ("a |& b", ["a", "b"]),
        ("! a", ["a"]),
        ("a && b || c; d & e | f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a \\\n  b \\\n  c", ["a b c"]),
        ("a &&\n  b |\n  c", ["a", "b", "c"]),
        ("a # b; c", ["a"]),
        ("# a\nb", ["b"]),
        ("{ a; b; }", ["a", "b"]),
        ("(a; b)", ["a", "b"]),
        ("( (a) && { (b); } )", ["a", "b"]),
        ("", []),
        ("   \n", []),
        ("# nothing", []),
    ],
)
def test_lists_pipelines_and_groups_are_looked_into(line: str, commands: list[str]) -> None:
    assert ran(line) == commands


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("if a; then b; fi", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("if ! a && b; then c; fi", ["a", "b", "c"]),
        ("while a; do b; done", ["a", "b"]),
        ("until a; do b; done", ["a", "b"]),
        ("for i in 1 2; do a $i; done", ["a 1", "a 2"]),
        ("for i in x; do\n  a\n  b\ndone", ["a", "b"]),
        ("for i in $(a); do b; done", ["a", "b"]),
        ("for i; do a; done", ["a"]),
        ("for ((i=0; i<3; i++)); do a; done", ["", "a"]),
        ("case $x in a) b;; c|d) e; f;; *) g;; esac", ["b", "e", "f", "g"]),
        ("case $(a) in (b) c;& d) e;;& f) g;; esac", ["a", "c", "e", "g"]),
        ("select x in y; do a; done", ["a"]),
        ("if a; then\n  for i in x; do\n    b | c\n  done\nfi", ["a", "b", "c"]),
        ("[[ -n $(a) ]] && b", ["a", "[[", "b"]),
        ("(( x = $(a) + 1 )) && b", ["a", "b"]),
        ("time { a; b; }", ["a", "b"]),
        ("time (a; b)", ["a", "b"]),
        ("coproc { a; }", ["a"]),
        ("coproc NAME { a; }", ["a"]),
        ("a || { b; exit 1; }", ["a", "b", "exit 1"]),
        ("while read x; do a; done < <(b)", ["b", "", "read x", "a"]),
    ],
)
def test_compound_statements_are_looked_into(line: str, commands: list[str]) -> None:
    assert ran(line) == commands


@pytest.mark.parametrize(
    "line",
    [
        "echo $(a)",
        "echo ${ a; }",
        "x=${ a; }",
        "echo `a`",
        'echo "$(a)"',
        'echo "`a`"',
        'echo "x ${y:-$(a)} z"',
        "echo ${y:-$(a)}",
        "echo ${y:-`a`}",
        "echo $((1 + $(a)))",
        "echo x$(a)y",
        "$(a)",
        "x=$(a)",
        "x=$(a) true",
        "x=(1 $(a))",
        "x[$(a)]=1",
        "export x=$(a)",
        "local x=`a`",
        "echo > $(a)",
        "echo < $(a)",
        "echo > >(a)",
        "cat <<< $(a)",
        'cat <<< "$(a)"',
        "cat <<E\n$(a)\nE",
        "cat <<E\n`a`\nE",
        'cat <<E\n"${x:-$(a)}"\nE',
        "cat <<-E\n\t$(a)\n\tE",
        "cat <(a)",
        "cat <(true | a)",
        "tee >(a)",
        "for i in $(a); do :; done",
        "case $(a) in x) ;; esac",
        "[[ $(a) == x ]]",
        "[ -n $(a) ]",
        "(( $(a) ))",
        "if [ $(a) ]; then :; fi",
        "echo $(echo $(echo $(a)))",
        "echo `echo \\`a\\``",
        'echo "$(echo "$(a)")"',
        "f() { echo $(a); }",
        "echo $(\n  a\n)",
        "echo $(true; (a))",
        "echo a{b,$(a)}",
    ],
)
def test_a_substitution_is_found_wherever_it_stands(line: str) -> None:
    assert "a" in ran(line)
    assert parse(line).gaps == []


@pytest.mark.parametrize(
    "line",
    [
        "echo '$(a)'",
        "echo '`a`'",
        'echo "a; b"',
        "echo \\; a",
        'echo "it\'s; a"',
        "echo 'x' # $(a)",
        "cat <<'E'\n$(a) `a`\na\nE",
        "cat <<E\na; a\n\\$(a) \\`a\\`\nE",
        "cat <<\\E\n$(a)\nE",
        "git commit -m 'a && a'",
        "grep -e 'a|a' x",
        "printf '%s' '\na\n'",
        "x='$(a)'",
        "echo $'`a`'",
        "cat <<< 'a; a'",
        "[[ x == 'a; a' ]]",
    ],
)
def test_data_is_data(line: str) -> None:
    assert "a" not in ran(line)
    assert len([command for command in ran(line) if command]) <= 1
    assert parse(line).gaps == []


@pytest.mark.parametrize(
    ("line", "words", "redirects"),
    [
        ("rm -rf 2>/dev/null /", "rm -rf /", [("2", ">", "/dev/null")]),
        ("rm > a -rf > b /", "rm -rf /", [("", ">", "a"), ("", ">", "b")]),
        (">a rm /", "rm /", [("", ">", "a")]),
        ("2>&1 rm /", "rm /", [("2", ">&", "1")]),
        ("a > f", "a", [("", ">", "f")]),
        ("a >> f", "a", [("", ">>", "f")]),
        ("a >| f", "a", [("", ">|", "f")]),
        ("a < f", "a", [("", "<", "f")]),
        ("a <> f", "a", [("", "<>", "f")]),
        ("exec 3<>f", "exec", [("3", "<>", "f")]),
        ("exec 3<>/dev/tcp/h/1", "exec", [("3", "<>", "/dev/tcp/h/1")]),
        ("a &> f", "a", [("", "&>", "f")]),
        ("a &>> f", "a", [("", "&>>", "f")]),
        ("a >& f", "a", [("", ">&", "f")]),
        ("a 2>&1", "a", [("2", ">&", "1")]),
        ("a <&3", "a", [("", "<&", "3")]),
        ("a > f 2>&1 < g", "a", [("", ">", "f"), ("2", ">&", "1"), ("", "<", "g")]),
        ("a 2>f b", "a b", [("2", ">", "f")]),
        ("a 2 >f b", "a 2 b", [("", ">", "f")]),
        ('a > "$HOME/x"', "a", [("", ">", "\x02/x")]),
        ("a > 'b c'", "a", [("", ">", "b c")]),
        ("a <<< word", "a", [("", "<<<", "word")]),
        ("a <<< 'two words' b", "a b", [("", "<<<", "two words")]),
        ("a <<E b\nbody\nE", "a b", [("", "<<", "body\n")]),
        ("a <<E > f\nbody\nE", "a", [("", "<<", "body\n"), ("", ">", "f")]),
        ("a <<A <<B\nx\nA\ny\nB", "a", [("", "<<", "x\n"), ("", "<<", "y\n")]),
        ("a <<-E\n\tbody\n\tE", "a", [("", "<<", "body\n")]),
        ("> f", "", [("", ">", "f")]),
        ("a 1>f 2>g", "a", [("1", ">", "f"), ("2", ">", "g")]),
    ],
)
def test_redirects_are_told_from_words(
    line: str, words: str, redirects: list[tuple[str, str, str]]
) -> None:
    command = only(line)
    assert " ".join(word.value for word in command.words) == words
    assert [(r.descriptor, r.operator, r.target.value) for r in command.redirects] == redirects


@pytest.mark.parametrize(
    ("redirect", "writes"),
    [
        ("> f", True),
        (">> f", True),
        (">| f", True),
        ("&> f", True),
        ("<> f", True),
        (">& f", True),
        (">&2", False),
        ("2>&1", False),
        ("< f", False),
        ("<&3", False),
        ("<<< f", False),
    ],
)
def test_it_is_known_which_redirects_write_to_a_file(redirect: str, writes: bool) -> None:
    assert [found.writes for found in only(f"a {redirect}").redirects] == [writes]


def test_a_blocks_redirects_stand_on_a_command_of_their_own() -> None:
    block, inner = parse("{ a; } > f").commands
    assert block.words == []
    assert [redirect.target.value for redirect in block.redirects] == ["f"]
    assert inner.name == "a"


@pytest.mark.parametrize(
    ("line", "assignments", "words"),
    [
        ("X=1", [("X", "1")], ""),
        ("X=1 Y='a b'", [("X", "1"), ("Y", "a b")], ""),
        ("X=1 a b", [("X", "1")], "a b"),
        ("X= a", [("X", "")], "a"),
        ("a X=1", [], "a X=1"),
        ("PATH=$HOME:x a", [("PATH", "\x02:x")], "a"),
        ("export X=1", [("X", "1")], "export X=1"),
    ],
)
def test_assignments_are_told_from_words(
    line: str, assignments: list[tuple[str, str]], words: str
) -> None:
    command = only(line)
    assert [tuple(assignment) for assignment in command.assignments] == assignments
    assert " ".join(word.value for word in command.words) == words


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("rm", "rm"),
        ("/bin/rm", "rm"),
        ("/usr/local/bin/rm", "rm"),
        ("../../bin/rm", "rm"),
        ("./rm", "./rm"),
        ("scripts/rm", "scripts/rm"),
        ('"rm"', "rm"),
        ("\\rm", "rm"),
    ],
)
def test_a_program_is_known_by_its_name_whatever_directory_it_is_in(value: str, name: str) -> None:
    assert only(f"{value} x").name == name


@pytest.mark.parametrize(
    "line",
    [
        "f() { a; }",
        "f () { a; }",
        "function f { a; }",
        "function f() { a; }",
        "f() ( a )",
        "f() {\n  a\n}",
        "f() { a; } > out",
        "f() if true; then a; fi",
    ],
)
def test_a_functions_body_is_read_where_it_is_defined(line: str) -> None:
    assert named(line, "a").function == "f"


def test_a_functions_body_is_read_again_for_the_arguments_of_a_call() -> None:
    assert ran('f() { rm -rf "$1"; }; f /') == ["rm -rf \x01", "f /", "rm -rf /"]
    assert ran('f() { rm "$@"; }\nf -r x')[-1] == "rm -r x"


def test_a_function_that_calls_itself_is_read_to_an_end() -> None:
    assert ran("f() { f; g; }; f").count("g") >= 1
    assert ran("f() { g; }; g() { f; }; f")


def test_the_commands_of_a_functions_body_know_each_other() -> None:
    first, second = parse("f() { a; b; }").commands
    assert [command.name for command in first.siblings] == ["a", "b"]
    assert first.siblings is second.siblings


@pytest.mark.parametrize(
    ("line", "joined_by"),
    [
        ("a && b", ["", "&&"]),
        ("a || b", ["", "||"]),
        ("a; b", ["", ";"]),
        ("a\nb", ["", ";"]),
        ("a & b", ["", "&"]),
        ("a | b", ["", "|"]),
        ("a && b || c; d | e & f", ["", "&&", "||", ";", "|", "&"]),
        ("(a; b) && c", ["", ";", "&&"]),
        ("a || { b; c; }", ["", "||", ";"]),
        ("a | b && c | d", ["", "|", "&&", "|"]),
    ],
)
def test_a_command_knows_what_joins_it_to_the_one_before(line: str, joined_by: list[str]) -> None:
    assert [command.joined_by for command in parse(line).commands] == joined_by


@pytest.mark.parametrize(
    ("line", "stages"),
    [
        ("a | b | c", [0, 1, 2]),
        ("a | b 2>&1 | c", [0, 1, 2]),
        ("a 2>&1 | b > f | c", [0, 1, 2]),
        ("a <<E | b | c\nbody\nE", [0, 1, 2]),
        ("a |& b", [0, 1]),
        ("a | { b; c; } | d", [0, 1, 1, 2]),
        ("a | (b; c)", [0, 1, 1]),
        ("if a; then b; fi | c", [0, 0, 1]),
        ("! a | b", [0, 1]),
        ("time a | b", [0, 0, 1]),
    ],
)
def test_a_command_knows_its_place_in_a_pipeline(line: str, stages: list[int]) -> None:
    commands = parse(line).commands
    assert [command.stage for command in commands] == stages
    assert all(list(command.pipeline) == commands for command in commands)


def test_pipelines_of_one_line_are_kept_apart() -> None:
    a, b, c, d, e = parse("a | b && c | d; e").commands
    assert list(a.pipeline) == list(b.pipeline) == [a, b]
    assert list(c.pipeline) == list(d.pipeline) == [c, d]
    assert list(e.pipeline) == []


@pytest.mark.parametrize(
    ("line", "background"),
    [
        ("a & b", ["a"]),
        ("a; b &", ["b"]),
        ("a | b & c", ["a", "b"]),
        ("{ a; b; } &", ["a", "b"]),
        ("(a) & b && c &", ["a", "b", "c"]),
        ("a && b", []),
        ("a 2>&1; b &> f", []),
    ],
)
def test_it_is_known_what_runs_in_the_background(line: str, background: list[str]) -> None:
    assert [c.name for c in parse(line).commands if c.is_background] == background


def test_what_is_put_on_standard_input_is_known() -> None:
    assert named("cat <<E | bash\nls -l\nE", "bash").feed == "ls -l\n"
    assert named("echo ls | bash", "bash").feed == "ls\n"
    assert named("bash <<< ls", "bash").feed == "ls"
    assert named("cat <<E\nx\nE\nbash", "bash").feed is None
    assert named("bash 3<<E\nx\nE", "bash").feed is None


@pytest.mark.parametrize(
    "line",
    [
        "echo é; rm ü && ls 漢字",
        "echo 'ö' | grep 語 > naïve; wc -l",
        "if test é; then rm ü; fi",
        "(echo ä; rm 'ß')",
        "x=é rm ü",
        "echo é # ü\nrm x",
        "for i in é; do echo ü; done",
        "f() { echo é; rm ü; }",
    ],
)
def test_the_span_of_each_command_is_its_text_in_bytes(line: str) -> None:
    raw = line.encode()
    for command in parse(line).commands:
        text = raw[command.start : command.end]
        first, last = command.words[0], command.words[-1]
        assert text.decode().strip() == text.decode()
        assert text.endswith(raw[last.start : last.end])
        assert command.assignments or text.startswith(raw[first.start : first.end])


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("é && rm -rf x; b", "rm", "rm -rf x"),
        ("echo \"é $(rm 'ü')\"", "rm", "rm 'ü'"),
        ("echo é `rm ü`", "rm", "rm ü"),
        ("cat <<E\né $(rm ü)\nE", "rm", "rm ü"),
        ("bash -c 'é; rm ü'", "rm", "rm ü"),
        ("sudo -u é rm ü", "rm", "rm ü"),
        ("bash -c 'bash -c \"rm ü\"'", "rm", "rm ü"),
        ("é | xargs rm ü", "rm", "rm ü"),
        ("eval 'é; rm ü'", "rm", "rm ü"),
        ("echo 'rm ü' | bash", "rm", "bash"),
    ],
)
def test_the_span_of_an_inner_command_is_where_it_stands(line: str, name: str, text: str) -> None:
    command = named(line, name)
    assert line.encode()[command.start : command.end].decode() == text


def test_each_word_has_its_own_span() -> None:
    line = "é 'a b' \"$HOME\" x\\ y"
    raw = line.encode()
    spans = [raw[word.start : word.end].decode() for word in only(line).words]
    assert spans == ["é", "'a b'", '"$HOME"', "x\\ y"]


# The holes of tree-sitter-bash


def test_a_command_after_a_long_pipeline_is_no_argument_of_its_last_stage() -> None:
    """The grammar takes `rm` for an argument of `c`, and reports no error."""
    line = "a | b | c\nrm -rf ~ || true"
    assert ran(line) == ["a", "b", "c", "rm -rf \x02", "true"]
    assert ran("a | b | c x\nrm -rf / && true") == ["a", "b", "c x", "rm -rf /", "true"]
    assert ran("a | b | c\nrm x\nd || e")[3:] == ["rm x", "d", "e"]


def test_backticks_in_a_heredoc_are_seen() -> None:
    """The grammar does not look for them there."""
    assert ran("cat <<E\n`rm -rf x`\nE") == ["rm -rf x", "cat"]
    assert ran("cat <<E\na \\`rm x\\` b\nE") == ["cat"]


def test_a_pipe_after_a_heredocs_operator_and_a_redirect_is_seen() -> None:
    """The grammar gives up on it."""
    line = "git commit -F - <<'M' 2>&1 | rm -rf x\nfoo\nM"
    assert ran(line) == ["git commit -F -", "rm -rf x"]
    assert parse(line).gaps == []


@pytest.mark.parametrize(
    "line", ["echo )", "if", "if a; then", "case x in", "for x", "a b ( c", "${"]
)
def test_what_is_no_shell_syntax_leaves_a_gap(line: str) -> None:
    assert parse(line).gaps


@pytest.mark.parametrize("line", ["a | | b", "a && && b", "a; ) ; b", "( a; b", "a\n}\nb"])
def test_what_stands_around_an_error_is_seen(line: str) -> None:
    assert {"a", "b"} <= set(ran(line))


def test_a_gap_has_its_place_and_hides_nothing_around_it() -> None:
    line = "é; rm -rf x; echo ) ; ls"
    found = parse(line)
    assert {"rm", "ls"} <= {command.name for command in found.commands}
    assert found.gaps
    assert all(")" in line.encode()[gap.start : gap.end].decode() for gap in found.gaps)


def test_a_command_shows_its_words() -> None:
    assert repr(only("git add x")) == "Command('git add x')"
