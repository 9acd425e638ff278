"""The commit chain: a key store over objects that are created only if they are absent, and never changed.

Commit n is the object of number n. A client that has applied commits 1 to n tests its checks on that state and creates
n+1; if another client was first, it applies that commit and tests again. So commits are serializable by construction,
and a lost reply is found out by reading one object.

Every hundredth commit makes a *root*: a list of snapshot objects from which that state can be read. What lies before
the root before it is deleted after an hour. **A deleted number could be created a second time, and no other client
would ever see that commit.** Two rules prevent it, and neither rests on a listing:

- a commit is deleted only once the second root after it exists, and has existed for an hour;
- a client whose last look at the head of the chain is older than a minute by the boot clock, when a call *ends*, asks
  for that very root before it believes the reply. If the root is there, it begins again from the newest one.

Listings are hints: one that is behind costs calls, and nothing else.
"""

from __future__ import annotations

__all__: list[str] = []
