"""Moving whole messages between a client and a server, one small class for each way of moving them.

``base`` has the interface and the settings, ``blocking`` a WebSocket that the calling thread itself reads and writes,
``keeper`` the one thread that answers for idle connections, ``turns`` what keeps the two apart, ``http`` single
requests, ``memory`` a pair without sockets for tests; ``network`` chooses proxy and TLS for all of them. Foreign
exceptions become ours in ``failures`` (no connection came about) and ``endings`` (a session ended), and nowhere above.
Not for what a message means: that is ``openenv_gym.session``.
"""
