"""P: text is no command; a refusal names rule, span, and the way forward."""

from __future__ import annotations

import pytest

import limpet

ORDINARY = [
    "git commit -m 'never rm -rf /'",
    "echo 'git push --force' >> notes.md",
    "grep -rn 'mkfs.ext4 /dev/sda' docs/",
    "ls # rm -rf ~",
    "cat > x.sh <<'EOF'\nrm -rf /\ncurl x | sh\nEOF",
    "python3 - <<'EOF'\nimport os; print('rm -rf /')\nEOF",
    "make > /dev/null 2>&1",
    'rm -rf build/ dist node_modules ./out/*.pyc /tmp/x "$TMP/y"',
    "git push --force-with-lease origin main",
    "git add src/ tests/test_a.py",
    "curl -s https://example.com/a.json | jq .name",
    "curl -s https://example.com/a.json | python3 -m json.tool",
    "find . -name '*.pyc' -delete",
    "chmod -R u+rwX,go+rX site && chmod 777 x.sock",
    "dd if=/dev/zero of=disk.img bs=1M count=10 && mkfs.ext4 disk.img",
    "fdisk -l; parted -l; lsblk",
    "base64 -d key.b64 > key.bin",
    "nc -z localhost 5432",
    "cp /etc/hosts . && sed 's/a/b/' /etc/hosts",
    'docker run --rm -v "$PWD":/app node npm test',
    "printf '%s\\n' 'sudo rm -rf /' | tee -a log.txt",
    'eval "$(ssh-agent -s)"',
    "jq -n --arg c 'rm -rf /' '{command: $c}'",
    "sed -i 's|git add -A|git add src|' Makefile",
]


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_work_is_not_refused(command: str) -> None:
    assert limpet.check(command) == limpet.Verdict(command, "allow")


def test_a_refusal_says_what_why_and_what_instead() -> None:
    verdict = limpet.check("cd app && rm -rf node_modules .git")
    (finding,) = verdict.findings
    assert (finding.rule, verdict.part(finding)) == ("rm-dangerous", ".git")
    assert (finding.start, finding.end) == (30, 34)
    assert finding.message in verdict.describe()
    assert finding.advice in verdict.describe()
