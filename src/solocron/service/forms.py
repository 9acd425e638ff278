"""The forms that begin and end a login. Every answer is a redirect, so that a reload repeats nothing."""

from __future__ import annotations

import re

from solocron.service.call import ApiCall, Redirect
from solocron.service.identity import set_cookie

__all__ = ["log_in", "log_out", "open_by_code"]

_OURS = re.compile(r"/(?![/\\])[!-~]*")
"""A path of this host: two slashes, or a slash and a backslash, would be another host."""


def log_in(call: ApiCall) -> Redirect:
    """Begin a login and go to the page that was wanted; a failure goes back to the form, whatever its reason."""
    wanted = call.body["wanted"] or ""
    page = wanted if _OURS.fullmatch(wanted) else f"{call.head.base}/"
    cookie = call.logins.begin(call.body["token"], call.head.address)
    if cookie is None:
        return Redirect(f"{call.head.base}/login?failed=1")
    return Redirect(page, (set_cookie(call.head, cookie),))


def open_by_code(call: ApiCall) -> Redirect:
    """Begin a login by the one-time code in the link that the process itself has printed."""
    cookie = call.logins.begin_by_code(call.given["code"], call.head.address)
    if cookie is None:
        return Redirect(f"{call.head.base}/login?failed=1")
    return Redirect(f"{call.head.base}/", (set_cookie(call.head, cookie),))


def log_out(call: ApiCall) -> Redirect:
    """End the login of this browser."""
    return Redirect(f"{call.head.base}/login", (set_cookie(call.head, "", lasts=0),))
