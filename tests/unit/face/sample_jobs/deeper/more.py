from solocron import every
from tests.unit.face.sample_jobs import send_digest

__all__ = ["Reports", "clean_up", "send_digest"]


@every("1h")
def clean_up() -> None:
    pass


class Reports:
    def __init__(self, name: str = "r") -> None:
        self.name = name
        self.seen: list[str] = []

    @every("1h")
    def weekly(self, run: object) -> str:
        self.seen.append(self.name)
        return self.name

    @staticmethod
    @every("2h")
    def static() -> None:
        pass

    @every("3h")
    @staticmethod
    def other_static() -> None:
        pass
