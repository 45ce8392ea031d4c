"""Disks: formatting, partitioning, writing over them."""

from __future__ import annotations

from limpet.command import options
from limpet.command.model import Command, Word
from limpet.command.words import UNKNOWN
from limpet.safety.paths import is_disk, is_disk_by_name, may_be_disk
from limpet.safety.rule import Rule, whole

_DRY = {"mke2fs": "n", "mkfs.ext2": "n", "mkfs.ext3": "n", "mkfs.ext4": "n", "mkfs.xfs": "N"}
"""The option with which each only says what it would do."""
MAKERS = ("mkfs", "mke2fs", "mkdosfs", "mkntfs", "mkreiserfs", "mkexfatfs", "newfs")


def _disk_among(words: list[Word]) -> Word | None:
    return next((word for word in words if may_be_disk(word.value)), None)


def _formatted(command: Command) -> Word | None:
    if (dry := _DRY.get(command.name)) and options.read(command.arguments).has(dry):
        return None
    return _disk_among(command.arguments)


MKFS = Rule(
    id="mkfs",
    message="making a filesystem erases all that is on the device",
    advice="if a filesystem is needed, make it in an image file: `truncate -s 1G disk.img`",
    find=_formatted,
    names=MAKERS,
    triggers=MAKERS,
    mention=r"\b(?:mkfs(?:\.\w{1,9})?|mke2fs)\s",
    refuses=("mkfs.ext4 /dev/sdb1", "mkfs -t vfat /dev/sda", "sudo mke2fs /dev/vdb"),
    permits=("mkfs.ext4 disk.img", "man mkfs", "mkfs.ext4 --help", "cat mkfs.c"),
)

_LISTING = {
    "fdisk": ("l", "list", "x", "list-details", "s", "getsz", "v", "V", "version", "h", "help"),
    "gdisk": ("l", "h", "help"),
    "cfdisk": ("h", "help", "V", "version"),
    "cgdisk": ("h", "help"),
    "sfdisk": tuple(
        """l list d dump J json F list-free s show-size V verify g show-geometry T list-types n
        no-act h help v version""".split()
    ),
    "sgdisk": ("p", "print", "i", "info", "v", "verify", "b", "backup", "E", "F", "f", "L", "P"),
    "wipefs": ("n", "no-act", "h", "help", "V", "version"),
    "mkswap": ("h", "help", "V", "version"),
}
_SGDISK_WRITES = (
    "n",
    "new",
    "d",
    "delete",
    "o",
    "clear",
    "Z",
    "zap-all",
    "z",
    "zap",
    "t",
    "c",
    "g",
)
_PARTED_WRITES = frozenset(
    """mklabel mktable mkpart mkpartfs mkfs rm resizepart resize move set toggle name disk_set
    disk_toggle type rescue""".split()
)


def _partitioned(command: Command) -> Word | None:
    given = options.read(command.arguments, _WITH_VALUE.get(command.name, ""))
    disk = _disk_among(given.operands)
    if command.name == "parted":
        text = " ".join(word.value for word in given.operands) + " " + (command.feed or "")
        values = text.split()
        writes = any(value in _PARTED_WRITES for value in values) or command.feed == UNKNOWN
        return disk if writes else None
    writes = command.name == "sgdisk" and given.has(*_SGDISK_WRITES)
    if given.has(*_LISTING[command.name]) and not writes:
        return None
    if command.name == "wipefs" and not given.has("a", "all", "o", "offset"):
        return None
    return disk


_WITH_VALUE = {"fdisk": "bcCHStuwW", "sfdisk": "NwWXYoO", "wipefs": "otO", "mkswap": "pLUv"}

FDISK = Rule(
    id="fdisk",
    message="writing a partition table or signature makes all data on the disk unreachable",
    advice="only look: `lsblk`, `fdisk -l`; or work on an image file",
    find=_partitioned,
    names=(*_LISTING, "parted"),
    triggers=(*_LISTING, "parted"),
    mention=r"\b(?:[cs]?fdisk|s?gdisk|parted|wipefs)\s",
    refuses=(
        "fdisk /dev/sda",
        "parted /dev/sda mklabel gpt",
        "wipefs -a /dev/sdb",
        "mkswap /dev/sdc1",
    ),
    permits=(
        "fdisk -l",
        "parted -l",
        "sfdisk --dump /dev/sda",
        "wipefs /dev/sda",
        "mkswap /swapfile",
    ),
)


def _copied_onto(command: Command) -> Word | None:
    for word in command.arguments:
        key, _, path = word.value.partition("=")
        if key == "of" and path and is_disk(path):
            return word
    return None


DD_DEVICE = Rule(
    id="dd-device",
    message="dd writes over the device, and all that is on it",
    advice="write to a file: `of=./disk.img`",
    find=_copied_onto,
    names=("dd", "gdd"),
    triggers=("of=",),
    mention=r"\bof=/dev/",
    refuses=("dd if=x.iso of=/dev/sdb", 'dd if=/dev/zero of="/dev/nvme0n1"'),
    permits=("dd if=/dev/zero of=x.img", "dd if=/dev/sda of=backup.img", "dd of=/dev/null"),
)


def _written(command: Command) -> Word | None:
    for redirect in command.redirects:
        if redirect.writes and is_disk_by_name(redirect.target.value):
            return redirect.target
    if command.name == "tee":
        operands = options.read(command.arguments).operands
        return next((word for word in operands if is_disk_by_name(word.value)), None)
    if command.name in ("cp", "mv"):
        given = options.read(command.arguments, "tS", ("target-directory", "suffix"))
        return next((word for word in given.operands[1:] if is_disk_by_name(word.value)), None)
    return None


def destination(command: Command) -> Word | None:
    """Return where `cp` or `mv` puts things."""
    given = options.read(command.arguments, "tS", ("target-directory", "suffix"))
    directory = given.value("t", "target-directory")
    if directory is not None:
        return whole(command)._replace(value=directory)
    return given.operands[-1] if len(given.operands) > 1 else None


DEVICE_REDIRECT = Rule(
    id="device-redirect",
    message="this writes over a disk from its first byte on",
    advice="write to a file in the project",
    find=_written,
    names=("tee", "cp", "mv"),
    watches=("redirects",),
    triggers=("/dev/",),
    mention=r">\s{0,9}[\"']?/dev/(?:sd|hd|vd|nvme|mmcblk|disk)",
    refuses=("cat x.img > /dev/sda", "echo x | tee /dev/nvme0n1", "cp x.iso /dev/sdb"),
    permits=("make > /dev/null 2>&1", "cat /dev/sda1 > x.img", "echo hi > /dev/tty"),
)
