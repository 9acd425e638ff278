"""A call in a process of its own, both sides of it. The process and all that it started are killed when it must stop.

On the node: `dispatcher` starts a `child` for each call, sends it an `order` and keeps the end of its `output`. In the
child, `python -m solocron.dispatch.process`: a guard that ends with the lease (`__main__`), and the `worker` that it
watches, which reads the guard's news in memory that both share (`shared`).

The function travels by module and name, facts and result as JSON over pipes; nothing is pickled. With every renewal the
child is told until when the session can be trusted. It ends itself at that moment, or when the node's process is gone:
a node that is frozen or killed leaves no child working past its lease.
"""
