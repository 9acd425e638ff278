"""The content of each page as frozen values: pure functions from the client's views, without store and without clock.

A page is a dataclass with the name of its template; `render.render` turns it and its frame into HTML.
"""
