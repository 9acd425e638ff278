from solocron import cron


@cron("61 * * * *")
def never() -> None: ...
