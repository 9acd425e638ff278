"""Helpers of the pictures: escaped text, numbers as short as possible, and the hatch patterns."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from solocron.service.shown import scrubbed

__all__ = ["HATCHES", "drawn", "link", "pct", "px", "shown", "text"]

# C0 and C1 controls, and the characters that change the direction or the joining of what follows them.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)

HATCHES = Markup(
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch-line" x1="0" y1="0" x2="0" y2="6"/></pattern>'
    '<pattern id="hatch-dead" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch-dead" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>'
)
"""Defined once a page; ids of patterns are looked up in the whole document."""


def drawn(*parts: str) -> Markup:
    """Join the parts of a picture; each was made here or passed through `text`."""
    return Markup("".join(parts))  # noqa: S704 -- the one place where strings become markup


def shown(value: str) -> str:
    r"""Return the string with control and bidi characters spelled out, such as `\u202e`."""
    # Every character of the pattern is unprintable; most strings have none, and a page has thousands of them.
    if value.isprintable():
        return value
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def text(value: str) -> str:
    """Return the string as it may stand in an element or between double quotes, without passwords of URLs."""
    return str(escape(shown(scrubbed(value) if "://" in value else value)))


def pct(share: float) -> str:
    """Return a share of the width, 0 to 1, as a percentage."""
    return f"{share * 100:.4g}%"


def px(value: float) -> str:
    """Return a length in pixels."""
    return f"{round(value, 1):g}"


def link(href: str | None, label: str, inside: str) -> str:
    """Wrap a shape in a link with its whole label; without `href` in a group with the same label."""
    said = text(label)
    if href is None:
        return f'<g role="img" aria-label="{said}"><title>{said}</title>{inside}</g>'
    return f'<a href="{text(href)}" aria-label="{said}" tabindex="-1"><title>{said}</title>{inside}</a>'
