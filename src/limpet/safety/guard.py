"""Rules and permissions put together, and put to a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from limpet.command.model import Command, Gap, Line
from limpet.command.parse import parse
from limpet.policy import PermissionPolicy, RulePolicy
from limpet.safety import permissions
from limpet.safety.rule import Rule
from limpet.safety.rules import DEFAULT, STRICT
from limpet.verdict import Decision, Finding, Verdict

if TYPE_CHECKING:
    from limpet.safety.strict import TextRule

NOT_UNDERSTOOD = "not-understood"
_PACKS: dict[str, tuple[Rule, ...]] = {"default": DEFAULT, "strict": STRICT, "none": ()}
_MOST_FINDINGS = 20
_HIDDEN = re.compile(r"""\w["'\\]+\w|\$'|\\\n|(?:^|[;&|(`\n])\s*+[^\s;&|()'"]*+\$""")
"""How a name may be spelled so that its text is not there: quoted in part, or by a variable."""
_SHORT = 4000
_SETS_VARIABLE = re.compile(
    r"(?:^|[;&|\n]|\b(?:export|local|declare|readonly|typeset)\s)\s*+\w++\+?=|\bread\b|\bset\s"
)
_COMPOUND = re.compile(r"\b(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|in)\b")
_SIMPLE = re.compile(
    r"""(?:[\w./:=,@%+*?~^-]++|'[^']*+'|"(?:[^"$`\\]|\$(?!\())*+"|\$\w++|\$\{\w++\}|\s++|&&|\|\||[;|&]
    |>{1,2}|<(?![<(]))++\Z""",
    re.X,
)
"""Lists and pipelines of words, quoted words and variables: no more syntax than that."""
_MISPLACED = re.compile(
    r"(?:^|(?>&&|\|\||\|&|[;|&]))\s*+(?:[;|]|&(?!>))|(?:&&|[|<>])\s*+\Z|[<>]\s*+[;|<]"
)
"""Operators where a word must stand; the tree tells whether it is an error."""


class Guard:
    """Checks commands against one policy's rules and permissions."""

    def __init__(self, rules: RulePolicy, allowed: PermissionPolicy) -> None:
        off = frozenset(rules.off)
        active = [rule for rule in (*_PACKS[rules.pack], *rules.extra) if rule.id not in off]
        self._text_rules = _text_rules(rules)
        self._by_name: dict[str, list[Rule]] = {}
        self._for_all = [rule for rule in active if not (rule.names or rule.watches)]
        self._on_redirects = [rule for rule in active if "redirects" in rule.watches]
        self._in_functions = [rule for rule in active if "functions" in rule.watches]
        self._on_marks = [rule for rule in active if "marked" in rule.watches]
        for rule in active:
            for name in rule.names:
                self._by_name.setdefault(name, [*self._for_all]).append(rule)
        self._active = active
        self._triggers = tuple({trigger for rule in active for trigger in rule.triggers})
        self._reads_all = not all(rule.triggers for rule in active)
        self._words = _beginnings(self._triggers)
        self._notes_gaps = NOT_UNDERSTOOD not in off and bool(active)
        self._deny = tuple(map(permissions.pattern, allowed.deny))
        self._ask = tuple(map(permissions.pattern, allowed.ask))
        self._allow = tuple(map(permissions.pattern, allowed.allow))
        self._unmatched: Decision = allowed.unmatched or ("ask" if allowed.allow else "allow")
        self._has_permissions = bool(self._deny or self._ask) or self._unmatched != "allow"
        self._reads_all = self._reads_all or self._has_permissions

    def check(self, command: str) -> Verdict:
        """Return the verdict on a command, without running anything."""
        is_open = self._reads_all or self._text_rules
        if not is_open and self._is_of_no_interest(command):
            return Verdict(command, "allow")
        line = parse(command, None if self._reads_all else self._skim)
        denied = self._broken(line.commands)
        if self._text_rules:
            denied += self._forbidden_text(command)
        asked: list[Finding] = []
        notes: list[Finding] = []
        if line.gaps and self._notes_gaps:
            for gap in line.gaps:
                (asked if self._is_mentioned(gap) else notes).append(_not_understood(gap))
        if self._has_permissions:
            for wanted, finding in self._unpermitted(line):
                (denied if wanted == "deny" else asked).append(finding)
        findings = denied or asked or notes
        if not findings:
            return Verdict(command, "allow")
        decision: Decision = "deny" if denied else "ask" if asked else "allow"
        unique = tuple(dict.fromkeys(findings))[:_MOST_FINDINGS]
        return Verdict(command, decision, unique)

    def _is_of_no_interest(self, command: str) -> bool:
        """Tell whether a command has nothing in it that a rule is about, and is plain to see."""
        if len(command) > _SHORT or ("$" in command and _SETS_VARIABLE.search(command)):
            return False
        text = command.replace("/dev/null", "") if "/dev/null" in command else command
        if any(map(text.__contains__, self._triggers)) and self._words.search(text):
            return False
        if _HIDDEN.search(command) or _COMPOUND.search(command) or _MISPLACED.search(command):
            return False
        return _SIMPLE.match(command) is not None

    def _skim(self, script: str) -> Callable[[str], object]:
        """Return what tells whether a rule may have a say about a part of a long script."""
        present = [trigger for trigger in self._triggers if trigger in script]
        return lambda part: any(map(part.__contains__, present)) or _HIDDEN.search(part)

    def _broken(self, commands: list[Command]) -> list[Finding]:
        findings: list[Finding] = []
        for command in commands:
            for rule in self._concerned(command):
                part = rule.find(command)
                if part is not None:
                    finding = Finding(rule.id, rule.message, rule.advice, part.start, part.end)
                    findings.append(finding)
        return findings

    def _concerned(self, command: Command) -> list[Rule]:
        """Return the rules that are about a command: for most commands there are none."""
        name = command.name
        rules = self._by_name.get(name) or self._for_all
        if command.redirects:
            rules = rules + self._on_redirects
        if command.function:
            rules = rules + self._in_functions
        if name[:1] < " ":
            rules = rules + self._on_marks
        elif name[-1] in _DIGITS or "." in name:
            rules = rules + self._by_name.get(_unversioned(name), [])
        return rules

    def _forbidden_text(self, command: str) -> Iterator[Finding]:
        for rule in self._text_rules:
            for start, end in rule.spans(command):
                before = len(command[:start].encode("utf-8", "surrogatepass"))
                within = len(command[start:end].encode("utf-8", "surrogatepass"))
                yield Finding(rule.id, rule.message, rule.advice, before, before + within)

    def _is_mentioned(self, gap: Gap) -> bool:
        """Tell whether text that could not be read names a command that a rule is about."""
        mentions = (rule.mention or "|".join(rule.names) for rule in self._active)
        return any(mention and re.search(mention, gap.text, re.S) for mention in mentions)

    def _unpermitted(self, line: Line) -> Iterable[tuple[Decision, Finding]]:
        if (found := permissions.first_match(self._deny, line.commands)) is not None:
            yield "deny", _permission(*found, "denies", "use another command")
        if (found := permissions.first_match(self._ask, line.commands)) is not None:
            yield "ask", _permission(*found, "wants a person to approve", "ask for approval")
        if self._unmatched == "allow":
            return
        command = permissions.uncovered(self._allow, line.commands)
        if command is not None:
            yield self._unmatched, _not_allowed(command)
        elif line.gaps:
            yield self._unmatched, _not_understood(line.gaps[0])


_DIGITS = "0123456789"


def _text_rules(rules: RulePolicy) -> list[TextRule]:
    """Return the checks of the text itself, which most policies have none of."""
    if rules.pack != "strict" and not rules.blocked_patterns:
        return []
    from limpet.safety.strict import TEXT_RULES, literal  # most have no use for it

    texts = TEXT_RULES if rules.pack == "strict" else ()
    own = [rule for rule in texts if rule.id not in rules.off]
    return [*own, *map(literal, rules.blocked_patterns)]


def _beginnings(triggers: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds triggers: signs anywhere, words where a word begins."""
    words = "|".join(re.escape(one) for one in triggers if one[0].isalnum())
    signs = [re.escape(one) for one in triggers if not one[0].isalnum()]
    return re.compile("|".join([rf"(?<![\w-])(?:{words or '(?!)'})", *signs]))


def _unversioned(name: str) -> str:
    """`mkfs.ext4` is a mkfs, `python3.12` a python."""
    return name.partition(".")[0].rstrip(_DIGITS)


def _not_understood(gap: Gap) -> Finding:
    return Finding(
        NOT_UNDERSTOOD,
        "this part could not be read as shell syntax, so no rule could be applied to it",
        "write it in plainer syntax, one command to a line",
        gap.start,
        gap.end,
    )


def _permission(one: permissions.Pattern, command: Command, does: str, advice: str) -> Finding:
    message = f"the permission pattern {one.text!r} {does} this command"
    return Finding("permission", message, advice, command.start, command.end)


def _not_allowed(command: Command) -> Finding:
    name = command.name or "a redirect"
    return Finding(
        "permission",
        f"no permission pattern allows {name!r} here",
        f"use an allowed command, or add a pattern such as {f'{name} *'!r} to `allow`",
        command.start,
        command.end,
    )
