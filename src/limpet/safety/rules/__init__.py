"""All rules, one piece each."""

from limpet.safety.rules.bomb import FORK_BOMB
from limpet.safety.rules.disk import DD_DEVICE, DEVICE_REDIRECT, FDISK, MKFS
from limpet.safety.rules.files import CHMOD_777, ETC_OVERWRITE
from limpet.safety.rules.git import ADD_BLIND, PUSH_FORCE
from limpet.safety.rules.remove import RM_DANGEROUS, SUDO_RM
from limpet.safety.rules.shells import ENCODED_SHELL, NETCAT_EXEC, PIPE_TO_SHELL

DEFAULT = (
    ADD_BLIND,
    PUSH_FORCE,
    RM_DANGEROUS,
    MKFS,
    FDISK,
    DD_DEVICE,
    DEVICE_REDIRECT,
    FORK_BOMB,
    CHMOD_777,
    ETC_OVERWRITE,
    PIPE_TO_SHELL,
    ENCODED_SHELL,
    NETCAT_EXEC,
)
STRICT = (*DEFAULT, SUDO_RM)
