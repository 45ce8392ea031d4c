"""What a command tries to do outside its sandbox does not happen, whoever runs it.

Each attempt is made three times by each user: without a sandbox, where it must have its effect,
else it would prove nothing, and in both modes, where it must have none.
"""

from __future__ import annotations

import functools

import pytest

from security.attacks import driver
from security.campaign import Attempt, Came, make
from security.host import MODES, USERS
from security.table import has_teeth

ATTEMPTS = [
    (kind, name)
    for kind, programs in driver.PROGRAMS.items()
    for name in (*programs, *driver.COMMANDS.get(kind, ()))
]


@functools.cache
def outcomes(user: str, mode: str) -> dict[Attempt, Came]:
    """Make all attempts in one run, and return what each came to."""
    wanted = [each for each in ATTEMPTS if mode != "off" or has_teeth(user, *each)]
    return make(user, mode, wanted)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", ["off", *MODES])
def test_all_attempts_can_be_made(user: str, mode: str) -> None:
    outcomes(user, mode)


@pytest.mark.parametrize(("kind", "name"), ATTEMPTS, ids=map(": ".join, ATTEMPTS))
def test_it_has_an_effect_outside_only_without_a_sandbox(kind: str, name: str) -> None:
    for user in USERS:
        if has_teeth(user, kind, name):
            came = outcomes(user, "off")[kind, name]
            assert came.had_effect, f"proves nothing as {user}: {came.said}"
    escaped = [
        (user, mode, outcomes(user, mode)[kind, name].said)
        for user in USERS
        for mode in MODES
        if outcomes(user, mode)[kind, name].had_effect
    ]
    assert escaped == []
