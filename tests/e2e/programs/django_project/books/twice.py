from solocron import every


@every("1d", name="bill")
def other() -> None: ...
