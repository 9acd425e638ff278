"""The rows of a table as HTML. A page has up to a thousand cells, and each costs a template ten times as much."""

from __future__ import annotations

from markupsafe import Markup

from solocron.service.draw.svg import drawn, text
from solocron.service.pages.parts import ActLink, Badge, Column, TableCell, TablePart

__all__ = ["rows_of"]


def rows_of(table: TablePart) -> Markup:
    """Return every row of a table."""
    parts: list[str] = []
    for row in table.rows:
        keys = "".join(f' data-{text(key)}="{text(href)}"' for key, href in row.keys)
        parts.append(f'<tr class="{"sel" if row.chosen else ""}{" follow" if row.follows else ""}"{keys}>')
        if table.picks:
            pick = text(row.pick or "")
            parts.append(
                f'<td class="pick"><input type="checkbox" name="job" value="{pick}" aria-label="Select {pick}" '
                'autocomplete="off"></td>'
            )
        column = 0
        for cell in row.cells:
            parts.append(_cell(cell, table.columns[column]))
            column += cell.span
        parts.append("</tr>\n")
    return drawn(*parts)


def _cell(one: TableCell, column: Column) -> str:
    span = f' colspan="{one.span}"' if one.span > 1 else ""
    title = f' title="{text(one.title)}"' if one.title else ""
    begin = f'<td{span} class="{_classes(one, column)}"{title} data-of="{text(column.title)}">'
    badge = f"{_badge(one.badge)} " if one.badge else ""
    share = "" if one.share is None else _progress(one, one.share)
    picture = f"{one.picture} " if one.picture else ""
    after = f' <span class="muted">{text(one.after)}</span>' if one.after else ""
    return f"{begin}{badge}{share}{picture}{_words(one)}{after}{''.join(map(_act, one.acts))}</td>"


def _classes(one: TableCell, column: Column) -> str:
    found = (
        ("num", column.right),
        ("hide-s", not column.narrow and one.span == 1),
        ("mono", one.mono),
        ("fill", one.wide),
        ("wrap", one.long),
        ("clip", one.clip),
        (f"t-{one.tone}", one.tone),
    )
    return " ".join(name for name, is_so in found if is_so)


def _words(one: TableCell) -> str:
    said = text(one.text)
    if one.href:
        strong = ' class="name"' if one.strong else ""
        return f'<a{strong} href="{text(one.href)}">{said}</a>'
    if one.until:
        return f'<time datetime="{text(one.until)}" data-ticks>{said}</time>'
    return f'<span class="name">{said}</span>' if one.strong else said


def _progress(one: TableCell, share: float) -> str:
    return f'<progress max="100" value="{round(share * 100)}" aria-label="{text(one.title or one.text)}"></progress> '


def _badge(one: Badge) -> str:
    return f'<span class="st {text(one.tone)}">{_icon(one.icon)}{text(one.word)}</span>'


def _act(one: ActLink) -> str:
    dialog = " data-dialog" if one.dialog else ""
    key = f' data-key="{text(one.key)}"' if one.key else ""
    icon = _icon(one.icon) if one.icon else ""
    return f'\n<a class="btn small" href="{text(one.href)}"{dialog}{key}>{icon}{text(one.label)}</a>\n'


def _icon(name: str) -> str:
    return f'<svg class="ico" aria-hidden="true"><use href="#i-{text(name)}"/></svg>'
