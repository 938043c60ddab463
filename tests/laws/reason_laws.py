"""Laws of reasons: what is said is the case, and what is suggested works. Filled in below, code by code."""

from collections.abc import Callable

from tests.laws.case import Case


def every_reason_is_true(case: Case) -> int:
    """The plainest: whoever is named is there."""
    for wait in case.plan.waits:
        for blocker in wait.reason.blockers:
            if blocker.workload is not None and blocker.workload not in case.workloads:
                raise case.broken("every-reason-is-true", f"{wait.workload} is blocked by {blocker}, who is not there")
    return len(case.plan.waits)


LAWS: tuple[Callable[[Case], int], ...] = (every_reason_is_true,)
SUGGESTIONS: tuple[Callable[[Case], int], ...] = ()
