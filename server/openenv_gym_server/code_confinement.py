"""What a process that runs an agent's code takes from itself: time, memory, files, network, other processes.

Rlimits everywhere; on Linux also Landlock (no file but Python's own can be read, none written, no other process seen)
and a seccomp filter (no socket, no process or program started, no signal, no tracing, no memory shared with others, no
mode, owner, time or length of a file changed, no directory watched, no limit raised again, no kernel interface that
leads around these). Both hold for every thread begun later and cannot be taken back; no privilege is needed for
either. What the system does not have is left out: ``confine`` gives the names of what holds. That a file exists, and
its size, can be found by its name all the same.

Loaded by file into that process, without the package: the standard library alone. Not for running code
(``code_child.py``) nor for the process's environment and end (``code_act.py``).
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["confine"]

MAX_WRITTEN = 16 * 2**20
"""Bytes of the largest file that may be written, which is what the code prints."""


def confine(time_s: float, memory_mb: int) -> list[str]:
    """Confine this process, for good; it has one thread by now.

    Args:
        time_s: seconds of processor time.
        memory_mb: its address space, in MiB.

    Returns:
        What holds now: some of ``rlimits``, ``landlock``, ``seccomp``.
    """
    steps = {
        "rlimits": lambda: _limit(time_s, memory_mb),
        "landlock": lambda: _restrict_files(_readable()),
        "seccomp": _filter_calls,
    }
    holding = []
    for name, step in steps.items():
        # Each is best effort: what a system has not, its kernel, libc or Python says in several ways.
        with suppress(OSError, AttributeError, ImportError, ValueError):
            step()
            holding.append(name)
    return holding


def _limit(time_s: float, memory_mb: int) -> None:
    import resource  # noqa: PLC0415 - not on every system

    seconds = math.ceil(time_s) + 1
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": MAX_WRITTEN,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_AS": memory_mb * 2**20,
    }
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux" or sys.maxsize < 2**32:
        raise OSError("the numbers of system calls here are those of 64-bit Linux")
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _no_new_privileges(libc: ctypes.CDLL) -> None:
    _checked(libc.prctl(38, 1, 0, 0, 0))


# ---------------------------------------------------------------------------------------------------------- Landlock

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446


def _restrict_files(readable: Iterable[Path]) -> None:
    """Let no file be opened but for reading, and under these paths alone; where the kernel can, no TCP either.

    Source: the kernel's documentation of Landlock, versions 1 to 6 of its interface.
    """
    libc = _libc()
    version = _checked(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    handled = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        handled |= (1 << bit) if version >= since else 0
    tcp = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = struct.pack("=QQQ", handled, tcp, scopes)[:size]
    rules = _checked(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    try:
        for path in readable:
            _allow(libc, rules, path)
        _no_new_privileges(libc)
        _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: Path) -> None:
    with suppress(FileNotFoundError, PermissionError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            access = _READ_FILE | (_READ_DIR if path.is_dir() else 0)
            _checked(libc.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", access, opened), 0))
        finally:
            os.close(opened)


def _readable() -> list[Path]:
    """Python, what is installed beside it, and the libraries of the system: no project, no home, no /proc, no /etc."""
    system = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
    devices = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    installed = [Path(prefix) / part for prefix in own for part in ("lib", "lib64", "Lib", "DLLs")]
    beside = [Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    return [*map(Path, (*system, *devices)), *installed, *beside]


# ----------------------------------------------------------------------------------------------------------- seccomp

_ANYWHERE = {
    "pidfd_send_signal": (424, 424),
    "io_uring_setup": (425, 425),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
}
_CHANGING_FILES = {
    "creat": (85, None),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
}
"""What changes a file by its name alone, of which Landlock says nothing, or says it in newer kernels alone."""

_WATCHING = {
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "statmount": (457, 457),
    "listmount": (458, 458),
}
"""What tells of names and mounts that code may not look up, of which Landlock says nothing."""

_DENIED: dict[str, tuple[int, int | None]] = {
    **_ANYWHERE,
    **_CHANGING_FILES,
    **_WATCHING,
    "setrlimit": (160, 164),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
}
"""System calls that are refused, each with its number on x86-64 and on arm64.

All that makes processes is among them, so that ending this one ends all that the code began.
"""

_NOT_HERE = {"clone3": (435, 435), "openat2": (437, 437)}
"""System calls that are said to be missing: what they are to do is in memory, where no filter sees it.

Callers try ``clone`` and ``openat`` next.
"""

_OF_ZEROS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "prlimit64": ((302, 261), (16, 32, 36)),
    "sched_setaffinity": ((203, 122), (16,)),
}
"""System calls that are refused unless these words of their arguments are 0.

The first is a process, which 0 says is this one; the others are the address of new limits, which a process with the
right to may raise again.
"""

_SIGNALLING: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {"fcntl": ((72, 25), (8, 10, 15))}
"""System calls that are refused where their second argument, a command, is one of these.

They have the kernel send a signal of the caller's choice to any process of this user, whenever a file is ready:
``F_SETOWN``, ``F_SETSIG`` and ``F_SETOWN_EX``.
"""

_OF_THESE: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "socketpair": ((53, 199), (1, 0x801, 0x80001, 0x80801)),
    "ioctl": ((16, 29), (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
}
"""System calls that are refused where their second argument is none of these.

A socket's type, which is a stream's: a pair of datagram sockets can send to any other of this machine, whatever its
name. A device's command: whether it is a terminal and how large, what can be read at once, whether it blocks, whether
it is inherited; others signal processes, and change or stop whole file systems by a file that may be read.
"""

_THREAD, _TRUNCATES = 0x10000, 0x200
"""``CLONE_THREAD`` and ``O_TRUNC``; the latter empties a file that is opened for reading, too."""

_OF_FLAGS: dict[str, tuple[tuple[int, int | None], int, int, bool]] = {
    "clone": ((56, 220), 16, _THREAD, True),
    "open": ((2, None), 24, _TRUNCATES, False),
    "openat": ((257, 56), 32, _TRUNCATES, False),
}
"""System calls that must, or must not, have a flag, with the place of the word that holds it."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Each machine's column in the tables above, and its name in a filter."""

_KILL, _REFUSE, _NOT_THERE, _PASS = 0x80000000, 0x00050001, 0x00050026, 0x7FFF0000
"""What a filter may say: end the process, EPERM, ENOSYS, go on."""

_Line = tuple[int, int, int, int]
"""An instruction of a filter: what it does, how many to skip if so and if not, and its number."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _SAY = 0x20, 0x15, 0x35, 0x45, 0x06
"""The instructions that are used."""


def _filter_calls() -> None:
    """Refuse the system calls above, with EPERM.

    Source: the kernel's documentation of seccomp filters, ``linux/filter.h`` and ``asm/unistd.h``.
    """
    libc = _libc()
    program = _program(platform.machine())
    _no_new_privileges(libc)
    code = ctypes.create_string_buffer(program, len(program))
    pointer = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    _checked(libc.prctl(22, 2, pointer, 0, 0))


def _program(machine: str) -> bytes:
    """The filter: of 8 bytes an instruction, as the kernel reads it."""
    if machine not in _ARCHITECTURES:
        raise OSError(f"expected a machine among {sorted(_ARCHITECTURES)}, got {machine!r}")
    column, name = _ARCHITECTURES[machine]
    lines = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, name),
        (_SAY, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # the calls of the x32 interface, which have numbers of their own
        (_SAY, 0, 0, _KILL),
    ]
    for numbers in _NOT_HERE.values():
        lines += _when(numbers[column], _say(_NOT_THERE))
    for each in _DENIED.values():
        lines += _when(each[column], _say(_REFUSE))
    for numbers, words in _OF_ZEROS.values():
        lines += _when(numbers[column], _zeros(words))
    for numbers, values in _SIGNALLING.values():
        lines += _when(numbers[column], _second_of(values, _REFUSE, _PASS))
    for numbers, values in _OF_THESE.values():
        lines += _when(numbers[column], _second_of(values, _PASS, _REFUSE))
    for each, word, flag, needed in _OF_FLAGS.values():
        with_it, without = (_PASS, _REFUSE) if needed else (_REFUSE, _PASS)
        lines += _when(each[column], [(_LOAD, 0, 0, word), (_ANY_BIT, 0, 1, flag), *_say(with_it, without)])
    lines.append((_SAY, 0, 0, _PASS))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _when(number: int | None, block: list[_Line]) -> list[_Line]:
    """The block, which says something at its end, for this system call alone."""
    return [] if number is None else [(_EQUAL, 0, len(block), number), *block]


def _say(*verdicts: int) -> list[_Line]:
    return [(_SAY, 0, 0, verdict) for verdict in verdicts]


def _zeros(words: tuple[int, ...]) -> list[_Line]:
    block: list[_Line] = []
    for left, word in zip(range(len(words), 0, -1), words, strict=True):
        block += [(_LOAD, 0, 0, word), (_EQUAL, 0, 2 * left - 1, 0)]
    return [*block, *_say(_PASS, _REFUSE)]


def _second_of(values: tuple[int, ...], among: int, else_: int) -> list[_Line]:
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [(_LOAD, 0, 0, 24), *tests, *_say(else_, among)]
