"""Calls with a KeyboardInterrupt at any line of the code under test."""

import functools
import itertools
import sys


def interrupted(work, nth, file, through=()):
    """Do it, with a KeyboardInterrupt at the nth line of a file; whether it came.

    Args:
        work: what to do.
        nth: at which of the lines that are run, from 1 on.
        file: whose lines count.
        through: other files, whose calls into that one count too.
    """
    lines = itertools.count(1)

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return trace if frame.f_code.co_filename in through else None
        if event == "line" and next(lines) == nth:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        apart(work)()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def apart(work):
    """The same work as a generator's body, which has exceptions being handled of its own.

    A trace function can raise between the end of an ``except`` block and its tidying up, where no real interrupt comes:
    the block's exception would stay the one that is being handled for the rest of the thread's life.
    """

    @functools.wraps(work)
    def alone(*args, **kwargs):
        def body():
            yield work(*args, **kwargs)

        return next(body())

    return alone
