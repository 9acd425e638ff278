"""What happens between a node and its store: connections cut, replies lost, silence, partitions, latency."""

from __future__ import annotations

from proof.chaos.arena import Berth
from proof.chaos.fault import SERVERS, Fault, Scene
from solocron.testing.proxy import ChaosProxy

__all__ = ["CUT", "HALF_OPEN", "LATENCY", "LOST_REPLY", "NETWORK_FAULTS", "PARTITION"]

SEEN_WITHIN = 10.0


def _proxy(berth: Berth) -> ChaosProxy:
    assert berth.proxy is not None
    return berth.proxy


def _cut(scene: Scene) -> int:
    """After so many bytes of a request, or of a reply, the connection is reset."""
    with scene.arena.wires.lend(1, dice=scene.dice) as (berth,):
        proxy = _proxy(berth)
        for _ in range(4):
            before = proxy.traffic.cut
            proxy.cut_after(scene.dice.randint(0, 3000), scene.dice.choice(("requests", "replies")))
            try:
                proxy.wait_for(lambda seen: seen.cut > before, SEEN_WITHIN)  # noqa: B023
            except TimeoutError:  # its node is frozen, or just not there
                proxy.heal()
                return 0
    return 4


def _lost_reply(scene: Scene) -> int:
    """Requests arrive and are carried out; the replies are lost."""
    return _silence(scene, seconds=scene.dice.uniform(0.2, 1.0), deaf=True)


def _half_open(scene: Scene) -> int:
    """No closing message, no answer: only the node's own patience ends it."""
    return _silence(scene, seconds=scene.arena.lease * scene.pick(0.6, 2.0), deaf=False)


def _silence(scene: Scene, *, seconds: float, deaf: bool) -> int:
    with scene.arena.wires.lend(1, dice=scene.dice) as (berth,):
        proxy = _proxy(berth)
        before = proxy.traffic.swallowed
        if deaf:
            proxy.drop_replies()
        else:
            proxy.blackhole()
        try:
            proxy.wait_for(lambda seen: seen.swallowed > before, SEEN_WITHIN)
            scene.rest(seconds)
        except TimeoutError:
            return 0
        finally:
            proxy.heal()
    return 1


def _partition(scene: Scene) -> int:
    """One, two, four or all nodes are cut off, both ways or from the answers only, and come back in another order."""
    many = scene.pick(2, 5, 1, 4)
    one_way = scene.turn % 2 == 1
    with scene.arena.wires.lend(many, dice=scene.dice) as berths:
        before = sum(_proxy(berth).traffic.swallowed for berth in berths)
        for berth in berths:
            if one_way:
                _proxy(berth).drop_replies()
            else:
                _proxy(berth).refuse()
                _proxy(berth).blackhole()
        scene.rest(scene.arena.lease * scene.dice.uniform(0.5, 1.5))
        struck = sum(_proxy(berth).traffic.swallowed for berth in berths) > before
        for berth in scene.dice.sample(berths, len(berths)):
            _proxy(berth).heal()
            scene.rest(0.2)
    return many if struck else 0


def _latency(scene: Scene) -> int:
    """From five milliseconds to two leases, changing, so that connections overtake each other."""
    with scene.arena.wires.lend(2, dice=scene.dice) as berths:
        struck = False
        for delay in (0.005, scene.dice.uniform(0.02, 0.3), scene.arena.lease * scene.pick(0.3, 2.0)):
            for berth in berths:
                _proxy(berth).delay(delay * scene.dice.uniform(0.5, 1.5))
            try:
                _proxy(berths[0]).wait_for(lambda seen: seen.held > 0, scene.arena.lease)
                struck = True
            except TimeoutError:
                pass
            scene.rest(scene.arena.lease / 3)
        for berth in berths:
            _proxy(berth).heal()
    return int(struck)


CUT = Fault("F7", "connection cut in a request or a reply", _cut, SERVERS)
LOST_REPLY = Fault("F8", "reply lost after the commit", _lost_reply, SERVERS)
HALF_OPEN = Fault("F9", "half-open connections", _half_open, SERVERS)
PARTITION = Fault("F10", "partition of 1 to 5 nodes", _partition, SERVERS)
LATENCY = Fault("F11", "latency up to two leases", _latency, SERVERS)
NETWORK_FAULTS = (CUT, LOST_REPLY, HALF_OPEN, PARTITION, LATENCY)
