"""The room for speed: what every run passes, written for the processor. Outside it, ordinary code.

- `values`: frozen dataclasses whose constructor and copy cost a fraction of the standard library's.
- `json_text`: the one JSON reader and writer, for documents, rows of a batch and records.
- `claim`: the ordinary claim on a short way, and `next_slots`, which remembers a claimer's last question.

Whatever is here has a plain twin that the tests compare it with (the standard library, the long way of a claim), and a
measurement that says what it brings. `docs/explanation/performance.md` has the figures.
"""
