"""The bugs of peers that we know of, P1 to P21: where they were, what went wrong, and which of our tests says never.

`test_table.py` keeps this table true: every bug has a test of its own here, and every test named is there.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KNOWN", "Known"]


@dataclass(frozen=True)
class Known:
    """A bug that another scheduler had."""

    name: str
    where: str
    what: str
    also: tuple[str, ...] = ()
    """Tests elsewhere that cover it on real servers, real processes, or more widely."""


_FAULTS = "src/solocron/testing/faults"
_POSTGRES = "tests/stores/postgres/test_faults.py"
_MARIADB = "tests/stores/mariadb/test_faults.py"
_REDIS = "tests/stores/redis/test_faults.py"
_PROTOCOL = "tests/unit/engine/test_lease_protocol.py"
_LOCKS = "tests/unit/effects/locks"

KNOWN = (
    Known("P1", "RedBeat #127", "a renewal without a look at the owner: two holders after a partition"),
    Known("P2", "RedBeat #208", "an exception while acquiring was swallowed, and the job ran as if it held the lock"),
    Known("P3", "RedBeat #129", "the store was unreachable, and the holder went on firing beside its successor"),
    Known(
        "P4",
        "RedBeat #163, #218, #230",
        "a failover, a suspended laptop, or a loop slower than the lease",
        (
            "tests/stores/redis/test_topology.py::test_sentinel_names_the_primary_and_a_failover_is_followed",
            f"{_LOCKS}/test_sessions.py::test_a_frozen_holder_is_told_that_it_lost_before_it_does_anything_else",
        ),
    ),
    Known(
        "P5",
        "RedBeat #291",
        "Redis evicted a schedule, which was silently gone",
        (
            "tests/stores/redis/test_settings.py::test_a_setting_that_loses_writes_fails_its_line_and_costs_the_tier",
            "tests/stores/redis/test_settings.py::test_memory_that_runs_out_is_seen_before_and_after",
        ),
    ),
    Known(
        "P6",
        "redis-py #1031",
        "a release deleted the successor's lock",
        (f"{_LOCKS}/test_lock.py::test_after_its_time_somebody_else_gets_it_and_the_old_holder_is_told",),
    ),
    Known("P7", "redis-py #489, #415, #4258", "the token was forgotten when a release failed"),
    Known(
        "P8",
        "redis-py #2624, #2665, CVE-2023-28858, CVE-2023-28859",
        "a cancelled call left its reply in the pipe, and the next one read it",
        (
            f"{_REDIS}::test_a_call_that_is_interrupted_before_its_reply_is_read_discards_its_connection",
            f"{_FAULTS}/server.py::test_an_interrupt_in_the_middle_of_a_change_keeps_nothing_from_others",
            f"{_FAULTS}/network.py::test_a_reply_that_comes_too_late_is_not_the_answer_to_the_next_question",
            f"{_LOCKS}/test_lock.py::test_coroutines_take_it_and_a_cancelled_one_leaves_nothing_behind",
        ),
    ),
    Known(
        "P9",
        "ShedLock #231, #263, #1241, #1439",
        "a client's clock in the WHERE: both acquired",
        ("tests/e2e/test_clock.py::test_wall_clocks_an_hour_off_and_stepping_change_nothing",),
    ),
    Known(
        "P10",
        "ShedLock #3577",
        "the lock was written inside the caller's transaction, and seen by others only when that ended",
        (
            f"{_POSTGRES}::test_x22_a_transaction_of_the_application_is_never_joined",
            f"{_MARIADB}::test_x22_a_transaction_of_the_application_is_never_joined",
            f"{_LOCKS}/test_lock.py::test_the_lock_is_taken_in_a_step_of_its_own_and_seen_by_others_at_once",
        ),
    ),
    Known("P11", "ShedLock #8, #6", "a task shorter than the skew of the clocks ran on each node in turn"),
    Known(
        "P12",
        "ShedLock #364, #207, #75",
        "a serialization failure or a duplicate key was a crash, or a lost run",
        (f"{_FAULTS}/locking.py::test_a_conflict_that_the_server_settles_against_a_client_is_tried_again",),
    ),
    Known("P13", "Quartz #107, #29, #280, #731", "a trigger's state was compared without a version: fired twice"),
    Known(
        "P14",
        "APScheduler #160, #655",
        "every worker process fired the job",
        (
            "tests/e2e/test_fleet.py::test_thirty_jobs_a_second_survive_kills_and_freezes",
            "tests/e2e/test_fork.py::test_a_fork_after_start_gets_a_session_of_its_own_and_leaves_the_parents_alone",
        ),
    ),
    Known(
        "P15",
        "APScheduler #529, #980, #1021, #1036, #1059",
        "the repeated hour: the same next time forever, a day skipped, or a time that does not exist",
        ("tests/unit/schedules/test_properties.py::test_the_next_slot_is_later_and_the_last_one_earlier",),
    ),
    Known(
        "P16",
        "celery #1604, #4041, #4184, #9715; django-celery-beat #82, #109, #319",
        "the zone of the last run was lost: duplicates, or thousands a second",
    ),
    Known(
        "P17",
        "etcd #9921, #11457, #16221",
        "the lease ended while the lock was waited for, and it was granted anyway",
    ),
    Known(
        "P18",
        "Kinesis client library",
        "a swap failed only because our own first try had succeeded and its answer was lost",
        (
            f"{_PROTOCOL}::test_rule_4_a_lost_answer_costs_no_session",
            f"{_LOCKS}/test_sessions.py::test_a_grant_whose_answer_was_lost_is_recognised_as_ones_own",
        ),
    ),
    Known("P19", "amazon-dynamodb-lock-client #44", "after a crash the lock never expired for those who did not wait"),
    Known(
        "P20",
        "nats-server #7564",
        "an acknowledged claim was lost, and the fence went back",
        (
            f"{_PROTOCOL}::test_a_store_that_was_restored_from_a_backup_is_not_claimed_from_until_someone_says_so",
            f"{_REDIS}::test_without_an_append_only_file_kill_9_loses_everything_and_it_is_noticed",
        ),
    ),
    Known("P21", "Kubernetes CronJob", "after a hundred missed starts it never started again"),
)
