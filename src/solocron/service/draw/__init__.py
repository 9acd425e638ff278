"""Pictures: values in, markup out. Pure; every string from outside passes through `svg.text`.

Positions are attributes in per cent and colours are classes, so that a picture fits any width without script and
passes a content security policy without inline styles.
"""
