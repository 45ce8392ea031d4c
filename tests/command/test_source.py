"""What the grammar misreads is masked, and no offset moves."""

from __future__ import annotations

import pytest

from limpet.command.scanner import DEEPEST, MOST_STAGES
from limpet.command.source import closing_bracket, mask, split


def bodies(text: str) -> list[str]:
    """Return the bodies of a text's here-documents, in the order of their operators."""
    heredocs = sorted(mask(text).heredocs.items())
    return [text[heredoc.body_start : heredoc.body_end] for _, heredoc in heredocs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat <<E\nbody\nE", ["body\n"]),
        ("cat <<E\nbody\nE\n", ["body\n"]),
        ("cat <<E\nE", [""]),
        ("cat << E\nbody\nE", ["body\n"]),
        ("cat <<E | bash\nbody\nE", ["body\n"]),
        ("cat <<E > out && ls\nbody\nE", ["body\n"]),
        ("cat 3<<E\nbody\nE", ["body\n"]),
        ("cat <<E\none\n\ntwo\nE\nls", ["one\n\ntwo\n"]),
        ("cat <<E\nnot E\nE2\n E\nE\n", ["not E\nE2\n E\n"]),
        ("cat <<A <<B\na\nA\nb\nB", ["a\n", "b\n"]),
        ("cat <<A; cat <<B\na\nA\nb\nB", ["a\n", "b\n"]),
        ("cat <<A\n<<B\nA\ncat <<C\nc\nC", ["<<B\n", "c\n"]),
        ("cat <<-E\n\tbody\n\tE\nls", ["\tbody\n"]),
        ("cat <<E\n\tE\nE", ["\tE\n"]),
        ("cat <<'E'\n$(a)\nE", ["$(a)\n"]),
        ('cat <<"E F"\nbody\nE F', ["body\n"]),
        ("cat <<\\E\nbody\nE", ["body\n"]),
        ("cat <<E'O'F\nbody\nEOF", ["body\n"]),
        ("x=$(cat <<E\nbody\nE\n)", ["body\n"]),
        ('echo "$(cat <<E\nit\'s\nE\n)"', ["it's\n"]),
        ("x=$(cat <<E\nbody\nE)", ["body\n"]),
        ("x=`cat <<E\nbody\nE\n`", ["body\n"]),
        ("(cat <<E\nbody\nE\n)", ["body\n"]),
        ("cat <<E\nnever closed", ["never closed"]),
        ("cat <<E\n'\nE\ncat <<F\nf\nF", ["'\n", "f\n"]),
        ("cat <<é\nbody\né", ["body\n"]),
        ("case x in\na) cat <<E;;\nbody\nE\nesac", ["body\n"]),
        ("x=$(case a in a) cat <<E;; esac\nbody\nE\n)", ["body\n"]),
    ],
)
def test_the_body_of_a_heredoc_is_what_stands_up_to_its_delimiter(
    text: str, expected: list[str]
) -> None:
    assert bodies(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "cat <<< word\nE",
        "echo $((1 << 2))\n2",
        "(( x = 1 << y ))\ny",
        "echo $(( (1) << (y) ))\ny",
        "echo '<<E'\nE",
        'echo "<<E"\nE',
        "echo $'\\'<<E'\nE",
        "ls # <<E\nE",
        "echo \\<<E\nE",
        "echo ${x#<<E}\nE",
    ],
)
def test_what_only_looks_like_a_heredoc_is_none(text: str) -> None:
    assert mask(text).heredocs == {}


def test_a_hash_inside_a_word_is_no_comment() -> None:
    assert bodies("echo a#b <<E\nbody\nE") == ["body\n"]


def test_a_quoted_delimiter_makes_the_body_literal() -> None:
    text = "cat <<'A' <<B <<-\"C\" <<\\D\nA\nB\nC\nD"
    flags = [(h.is_literal, h.strips_tabs) for _, h in sorted(mask(text).heredocs.items())]
    assert flags == [(True, False), (False, False), (True, True), (True, False)]


@pytest.mark.parametrize(
    "text",
    [
        "cat <<A <<-'B' | sh\nrm\nA\n\tx\n\tB\nls",
        "x=$(cat <<E\n`a` $(b)\nE\n); ls",
        "exec 3<>f 4<>g",
        "echo ${ a; } ${| b; } ${c}",
        "time { a; } && coproc N ( b )",
        "{a,b} {c,d}; e{f,g}",
        "cat <<E\nnever closed",
        "cat <<",
        "<<<<<<",
        "cat <<E\n",
        "((((",
        "é <<é\né\né",
    ],
)
def test_masking_never_moves_an_offset(text: str) -> None:
    assert len(mask(text).text) == len(text)


def test_what_needs_no_mask_is_left_as_it_is() -> None:
    text = "a | b && c > d; e < f\n${g} $((1)) # h"
    assert mask(text) == (text, {}, False)


def test_a_body_is_blank_in_the_masked_text() -> None:
    masked = mask("cat <<E | sh\nrm -rf /\nE\nls").text
    assert "rm" not in masked
    assert masked.startswith("cat <")
    assert masked.endswith("\nls")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("exec 3<>f", "exec 3< f"),
        ("a <> b", "a <  b"),
        ("time { a; }", "     { a; }"),
        ("time -p ( a )", "        ( a )"),
        ("coproc { a; }", "       { a; }"),
        ("coproc NAME { a; }", "            { a; }"),
        ("x; time { a; }", "x;      { a; }"),
        ("{rm,-rf,x}", "_rm,-rf,x_"),
        ("echo {a,b}", "echo {a,b}"),
        ("echo time { a; }", "echo time { a; }"),
        ("echo '<>'", "echo '<>'"),
    ],
)
def test_what_the_grammar_does_not_know_is_put_as_it_does(text: str, masked: str) -> None:
    assert mask(text).text == masked


@pytest.mark.parametrize("text", ["echo ${ a; }", "echo ${| a; }", 'echo "${ a; }"'])
def test_a_brace_substitution_becomes_one_with_brackets(text: str) -> None:
    masked = mask(text).text
    assert "$(" in masked
    assert ")" in masked
    assert len(masked) == len(text)


@pytest.mark.parametrize(
    ("text", "is_too_deep"),
    [
        ("(" * (DEEPEST - 1) + "a" + ")" * (DEEPEST - 1), False),
        ("(" * 1000 + "a" + ")" * 1000, True),
        ("$(" * 1000 + "a" + ")" * 1000, True),
        ("a | " * (MOST_STAGES // 2) + "a", False),
        ("a | " * (MOST_STAGES * 2) + "a", True),
        ("a | b; " * MOST_STAGES, False),
        ("a || " * (MOST_STAGES * 2) + "a", False),
    ],
)
def test_what_would_take_the_parser_too_long_is_said_to_be_too_deep(
    text: str, is_too_deep: bool
) -> None:
    assert mask(text).is_too_deep is is_too_deep


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a; b && c || d & e | f\ng", ["a", " b ", " c ", " d ", " e ", " f", "g"]),
        ("(a; b) && { c | d", ["(a; b) ", " { c ", " d"]),
        ("echo ';' \"&&\" \\; # ; |", ["echo ';' \"&&\" \\; # ; |"]),
        ("a $(b; c) `d; e` | f", ["a $(b; c) `d; e` ", " f"]),
        ("a 2>&1 &> b >| c; d", ["a 2>&1 &> b >| c", " d"]),
        ("a", ["a"]),
        ("", []),
    ],
)
def test_a_line_is_split_at_what_stands_in_no_bracket(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in split(text)] == parts


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("$(a)", "a"),
        ("$(a (b) c) d)", "a (b) c"),
        ("$(a ')' \")\" \\) b)", "a ')' \")\" \\) b"),
        ("$(a $(b) `c`)", "a $(b) `c`"),
        ("$(case x in y) z;; esac)", "case x in y) z;; esac"),
        ("$(never closed", "never closed"),
    ],
)
def test_a_bracket_is_closed_where_the_shell_closes_it(text: str, inside: str) -> None:
    assert text[2 : closing_bracket(text, 2, len(text))] == inside


def test_a_backtick_is_closed_by_the_next_that_is_not_escaped() -> None:
    text = "`a \\` b` c`"
    assert text[1 : closing_bracket(text, 1, len(text))] == "a \\` b"
