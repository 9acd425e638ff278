"""The timer: posts a signed request, as a platform's scheduler would.

TICK_SECRET=... python -m examples.cloud_run.wake http://localhost:8000/tick/
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sys
import time
import urllib.request


def wake(url: str, secret: str) -> str:
    """Return what the service answered."""
    at = str(int(time.time()))
    mac = hmac.new(secret.encode(), f"{at}.".encode(), hashlib.sha256).hexdigest()
    headers = {"Solocron-Signature": f"t={at},v1={mac}"}
    request = urllib.request.Request(url, data=b"", headers=headers, method="POST")  # noqa: S310 - a URL of one's own
    with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
        return str(answer.read().decode())


if __name__ == "__main__":
    print(wake(sys.argv[1], os.environ["TICK_SECRET"]))
