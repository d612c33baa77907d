"""The collector's settings of a server process."""

import gc

from openenv_gym_server.tuning import collect_rarely


def test_collections_become_rare_and_leave_out_what_is_loaded():
    thresholds = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.get_threshold() > thresholds
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
