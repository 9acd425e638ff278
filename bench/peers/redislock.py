"""python-redis-lock, measured like its neighbours: turns per second of acquire and release, printed as one number."""

from __future__ import annotations

import sys
import time

import redis
import redis_lock


def main(url: str, seconds: float) -> None:
    client = redis.Redis.from_url(url)

    def turn() -> None:
        with redis_lock.Lock(client, "bench-redislock", expire=60):
            pass

    turn()
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        turn()
        count += 1
    print(count / (time.perf_counter() - begun))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
