"""What the terms of a queue allow: limits, and what work that is not preemptible may use. By the quota as it is set."""

from collections.abc import Sequence
from dataclasses import dataclass

from aliquot.core.model import RESOURCES, ResourceName
from aliquot.core.rooms import Account, Vector


@dataclass(frozen=True, slots=True)
class Excess:
    """A term that would be passed: whose, of which resource, what is held, what is asked, and the bound."""

    account: Account
    resource: ResourceName
    held: int
    asked: int
    bound: int


def over_limit(accounts: Sequence[Account], amounts: Vector, *, counting: str) -> Excess | None:
    """The first limit, from the queue up, that these amounts would pass; `counting` "now" counts pods that end."""
    for account in accounts:
        for index, limit in account.limits:
            if not amounts[index]:
                continue
            resource = RESOURCES[index]
            held = account.level[index] + (account.releasing[index] if counting == "now" else 0)
            if held + amounts[index] > limit:
                return Excess(account, resource, held, amounts[index], limit)
    return None


def over_quota(accounts: Sequence[Account], amounts: Vector, *, counting: str) -> Excess | None:
    """The same for the quota and work that is not preemptible, which may use nothing beyond it."""
    for account in accounts:
        for index, quota in account.quotas:
            if not amounts[index]:
                continue
            resource = RESOURCES[index]
            held = account.fixed[index] + (account.fixed_releasing[index] if counting == "now" else 0)
            if held + amounts[index] > quota:
                return Excess(account, resource, held, amounts[index], quota)
    return None
