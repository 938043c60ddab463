"""Every sentence of the rules has cases of its own: they pass, and fail as soon as the rule is taken out."""

import re
from pathlib import Path

import pytest

from tests.scenarios import rules
from tests.scenarios.rule import CASES, Rule, missed, missed_without

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scheduling-rules.md"
ALL = [(chapter, rule) for chapter, found in rules.CHAPTERS.items() for rule in found]
_LEFT_OVER = re.compile(r"\w")
_NUMBER = re.compile(r"^[0-9]+\. ", re.MULTILINE)


def chapters_of_the_page() -> dict[str, str]:
    """The text of each chapter, on one line, as it is written. What stands before the first is no rule."""
    parts = re.split(r"^## (.+)$", _NUMBER.sub("", PAGE.read_text()), flags=re.MULTILINE)
    return {title: " ".join(text.split()) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.iterdir()))
def test_a_case_comes_out_as_it_says(name: str) -> None:
    assert missed(name) == []


@pytest.mark.parametrize("rule", [rule for _, rule in ALL], ids=lambda rule: rule.sentence[:60])
def test_without_the_rule_its_cases_fail(rule: Rule) -> None:
    failed = [{name for name in rule.cases if missed_without(way, name)} for way in rule.ways]

    assert [way.attribute for way, found in zip(rule.ways, failed, strict=True) if not found] == []
    assert set(rule.cases) == set().union(*failed)


def test_every_case_belongs_to_a_rule() -> None:
    named = {name for _, rule in ALL for name in rule.cases}

    assert named == {path.stem for path in CASES.iterdir()}


@pytest.mark.parametrize("chapter", chapters_of_the_page())
def test_every_sentence_of_the_page_is_a_rule_with_cases_or_said_to_be_none(chapter: str) -> None:
    text = chapters_of_the_page()[chapter]
    sentences = [rule.sentence for rule in rules.CHAPTERS.get(chapter, ())] + list(rules.NO_RULES.get(chapter, ()))

    assert [sentence for sentence in sentences if sentence not in text] == []
    for sentence in sorted(sentences, key=len, reverse=True):
        text = text.replace(sentence, "")
    assert not _LEFT_OVER.search(text), text
