"""Jobs that begin, or are given up before."""

from openenv_gym_server.tickets import Ticket


def test_a_job_that_began_cannot_be_withdrawn():
    ticket = Ticket()
    assert ticket.use(lambda a: a + 1, 1) == 2
    assert not ticket.withdraw()


def test_a_withdrawn_job_never_begins():
    ticket = Ticket()
    begun: list[int] = []
    assert ticket.withdraw()
    assert ticket.use(begun.append, 1) is None
    assert begun == []
