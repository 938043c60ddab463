"""All rules by the chapters of `docs/explanation/scheduling-rules.md`, and what of the page is no rule."""

from collections.abc import Mapping

from tests.scenarios.chapters import always, amounts, nodes, places, promising, shares, taking, turns
from tests.scenarios.rule import Rule

CHAPTERS: Mapping[str, tuple[Rule, ...]] = {
    "Amounts": amounts.RULES,
    "Fair share": shares.FAIR_SHARE,
    "What a project may use at all": shares.ALLOWED,
    "Who is served first": turns.ORDER,
    "Gangs": turns.GANGS,
    "Near each other": places.NEAR,
    "Parts of a device": places.PARTS,
    "Node pools": places.POOLS,
    "Which nodes may be used": nodes.MAY_BE_USED,
    "Where a pod goes": nodes.GOES,
    "Taking from others": taking.RULES,
    "Who gives first": promising.GIVES,
    "Time slices": promising.SLICES,
    "Promises": promising.PROMISES,
    "Ends for no one": promising.ENDS,
    "No, with proof": promising.COUNTS,
    "The budget of a cycle": promising.BUDGET,
    "What always holds": always.RULES,
}

NO_RULES: Mapping[str, tuple[str, ...]] = {
    "Fair share": (
        "[Fair share](fair-share.md) works it out in examples.",
        "**Past use.**",
        "On 8 GPUs with `k` = 1:",
        "| Project | Quota | Weight | Used | Asks | Part of the weight | Part of the use | Of the rest",
        "| Fair share, with past use |",
        # They are the case `past-use-counts`.
        "| vision | 2 | 1 | 60 % | 8 | 1/2 | 3/4 | 1/2 - 1/4 = 1/4 | 3 |",
        "| speech | 2 | 1 | 20 % | 8 | 1/2 | 1/4 | 1/2 + 1/4 = 3/4 | 5 |",
        "The quotas take 4 of the 8. Of the other 4 vision gets one quarter and speech three.",
    ),
    "Gangs": ("**Elastic.**", "**Stale.**"),
    "Parts of a device": ("**MIG.**",),
    "Taking from others": (
        "([why](../adr/0013-a-unit-that-cannot-be-split-may-cross-what-is-due.md)).",
        "**Minimum run time.**",
    ),
    # The server does these: a plan only has to know what has ended, and until when something backs off.
    "Ends for no one": (
        "A lost node and a time limit end work between two cycles.",
        "It waits longer after each failure.",
    ),
    "The budget of a cycle": ("Steps and not seconds, so that the same input has the same plan on every machine.",),
    "What always holds": ("Tests judge random clusters by these and some more laws (`make laws`).",),
    "Where a pod goes": ("| strategy | what it does |",),
}
