"""Make the tables, then start two nodes and a Celery worker, and end all of them with Ctrl-C.

DATABASE_URL=mysql://root@localhost/shop BROKER_URL=redis://localhost:6379/0 python start.py
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

NODE = [sys.executable, "manage.py", "solocron", "run"]
WORKER = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-Q", "cron", "-c", "2", "--loglevel=warning"]


def main() -> None:
    """Run until SIGTERM or Ctrl-C; a process that ends is left ended, to see what the others do."""
    for words in (["solocron", "migrate"], ["migrate", "--run-syncdb", "--verbosity=0"]):
        subprocess.run([sys.executable, "manage.py", *words], check=True)
    started = [subprocess.Popen(words) for words in (NODE, NODE, WORKER)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("started", *(one.pid for one in started), flush=True)
    try:
        while any(one.poll() is None for one in started):
            time.sleep(0.2)
    except KeyboardInterrupt:
        for one in started:
            one.terminate()
    for one in started:
        one.wait()


if __name__ == "__main__":
    main()
