"""What a process for code takes from itself."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openenv_gym_server import code_confinement
from openenv_gym_server.code_confinement import confine

X86, ARM = 0xC000003E, 0xC00000B7
PASS, REFUSED, NOT_THERE, ENDED = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def verdict(machine: str, architecture: int, number: int, first: int = 0, second: int = 0, third: int = 0) -> int:
    """What the filter says of a system call, by running its few kinds of instruction."""
    program = list(struct.iter_unpack("=HBBI", code_confinement._program(machine)))
    data = {0: number, 4: architecture, 16: first, 24: second, 32: third & 0xFFFFFFFF, 36: third >> 32}
    value, at = 0, 0
    tests: dict[int, Callable[[int, int], bool]] = {
        0x15: lambda a, b: a == b,
        0x35: lambda a, b: a >= b,
        0x45: lambda a, b: bool(a & b),
    }
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            value = data[operand]
        else:
            at += yes if tests[code](value, operand) else no


@pytest.mark.parametrize(
    ("machine", "architecture", "calls"),
    [
        ("x86_64", X86, {"read": 0, "open": 2, "mmap": 9, "exit": 60, "futex": 202, "openat": 257}),
        ("aarch64", ARM, {"read": 63, "openat": 56, "mmap": 222, "exit": 93, "futex": 98}),
    ],
)
def test_what_a_program_needs_passes_and_what_leads_out_is_refused(
    machine: str, architecture: int, calls: dict[str, int]
) -> None:
    column = code_confinement._ARCHITECTURES[machine][0]
    for number in calls.values():
        assert verdict(machine, architecture, number) == PASS
    for numbers in code_confinement._DENIED.values():
        denied = numbers[column]
        if denied is not None:
            assert verdict(machine, architecture, denied) == REFUSED
    for of_self, _ in code_confinement._OF_ZEROS.values():
        assert verdict(machine, architecture, of_self[column], first=0) == PASS
        assert verdict(machine, architecture, of_self[column], first=7) == REFUSED


@pytest.mark.parametrize(
    ("machine", "architecture", "truncating", "watching", "setrlimit"),
    [
        ("x86_64", X86, (76, 77, 85), (253, 254, 294, 300, 301), 160),
        ("aarch64", ARM, (45, 46), (26, 27, 262, 263), 164),
    ],
)
def test_no_file_is_emptied_no_directory_watched_and_no_limit_set(
    machine: str, architecture: int, truncating: tuple[int, ...], watching: tuple[int, ...], setrlimit: int
) -> None:
    everywhere = (433, 447, 457, 458, 467)  # fspick, memfd_secret, statmount, listmount, open_tree_attr
    for number in (*truncating, *watching, setrlimit, *everywhere):
        assert verdict(machine, architecture, number) == REFUSED


@pytest.mark.parametrize(("machine", "architecture", "prlimit"), [("x86_64", X86, 302), ("aarch64", ARM, 261)])
def test_limits_may_be_asked_for_and_not_set(machine: str, architecture: int, prlimit: int) -> None:
    assert verdict(machine, architecture, prlimit, second=7, third=0) == PASS
    for address in (0x1000, 0x7F00_0000_0000):
        assert verdict(machine, architecture, prlimit, second=7, third=address) == REFUSED


def test_no_file_is_opened_to_be_emptied() -> None:
    reading, emptying, appending = 0o2000000, 0o1000, 0o2001
    for flags, said in ((reading, PASS), (appending, PASS), (emptying, REFUSED), (emptying | reading, REFUSED)):
        assert verdict("x86_64", X86, 2, second=flags) == said
        assert verdict("x86_64", X86, 257, third=flags) == said
        assert verdict("aarch64", ARM, 56, third=flags) == said
    assert verdict("x86_64", X86, 437) == verdict("aarch64", ARM, 437) == NOT_THERE  # openat2


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")


@LINUX
@pytest.mark.parametrize(
    "emptied",
    [
        "os.truncate(path, 0)",
        "os.open(path, os.O_TRUNC)",
        "open(path, 'w')",
        "os.ftruncate(os.open(path, os.O_RDWR), 0)",
    ],
)
def test_where_landlock_knows_no_truncation_the_filter_alone_keeps_files_whole(tmp_path: Path, emptied: str) -> None:
    path = tmp_path / "precious"
    path.write_text("precious")
    code = (
        "import importlib.util, os\n"
        f"path = {str(path)!r}\n"
        f"spec = importlib.util.spec_from_file_location('confinement', {code_confinement.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "module._filter_calls()\n"
        f"try: {emptied}\n"
        "except PermissionError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, timeout=60)
    assert (done.stdout, done.stderr, path.read_text()) == (b"refused\n", b"", "precious")


@pytest.mark.parametrize(
    ("machine", "architecture", "fcntl", "ioctl"), [("x86_64", X86, 72, 16), ("aarch64", ARM, 25, 29)]
)
def test_no_file_can_be_made_to_signal_another_process(machine: str, architecture: int, fcntl: int, ioctl: int) -> None:
    for call, commands, harmless in (
        (fcntl, (8, 10, 15), (0, 1, 2, 3, 4, 9, 16, 1030)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
        (ioctl, (0x8901, 0x8902), (0x5401, 0x5413, 0x5421, 0x5451)),  # FIOSETOWN, SIOCSPGRP
        (ioctl, (0x40086602, 0xC0045877, 0x40806685), ()),  # FS_IOC_SETFLAGS, FIFREEZE, FS_IOC_ENABLE_VERITY
    ):
        assert {verdict(machine, architecture, call, second=each) for each in commands} == {REFUSED}
        assert {verdict(machine, architecture, call, second=each) for each in harmless} <= {PASS}


@pytest.mark.parametrize(("machine", "architecture", "number"), [("x86_64", X86, 53), ("aarch64", ARM, 199)])
def test_a_pair_of_sockets_is_of_streams_which_lead_nowhere_else(machine: str, architecture: int, number: int) -> None:
    stream, datagram, raw, packets = 1, 2, 3, 5
    for flags in (0, 0x800, 0x80000, 0x80800):  # SOCK_NONBLOCK, SOCK_CLOEXEC
        assert verdict(machine, architecture, number, first=1, second=stream | flags) == PASS
        for kind in (datagram, raw, packets):
            assert verdict(machine, architecture, number, first=1, second=kind | flags) == REFUSED


@pytest.mark.parametrize(("machine", "architecture"), [("x86_64", X86), ("aarch64", ARM)])
def test_a_thread_may_be_begun_and_a_process_not(machine: str, architecture: int) -> None:
    column = code_confinement._ARCHITECTURES[machine][0]
    clone = (56, 220)[column]
    assert verdict(machine, architecture, clone, first=0x3D0F00) == PASS
    assert verdict(machine, architecture, clone, first=0x01200011) == REFUSED
    assert verdict(machine, architecture, 435) == NOT_THERE


def test_calls_of_another_machine_end_the_process() -> None:
    assert verdict("x86_64", 0x40000003, 3) == ENDED
    assert verdict("x86_64", X86, 0x40000000 + 41) == ENDED


def test_another_machine_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        code_confinement._program("riscv64")


def test_what_a_system_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_confinement, "_limit", lambda *limits: None)
    monkeypatch.setattr(code_confinement.sys, "platform", "other")
    assert confine(1.0, 64) == ["rlimits"]


def test_limits_hold_in_the_process_and_are_no_higher_than_those_it_has() -> None:
    code = (
        "import importlib.util, json, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\n"
        f"spec = importlib.util.spec_from_file_location('confinement', {code_confinement.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "holding = module.confine(2.5, 512)\n"
        "names = ['RLIMIT_AS', 'RLIMIT_CPU', 'RLIMIT_NOFILE', 'RLIMIT_CORE', 'RLIMIT_FSIZE']\n"
        "print(json.dumps([holding, [resource.getrlimit(getattr(resource, name)) for name in names]]))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, timeout=60, check=True)
    holding, limits = json.loads(done.stdout)
    assert holding[0] == "rlimits"
    assert limits == [[512 * 2**20] * 2, [4, 4], [32, 32], [0, 0], [16 * 2**20] * 2]
