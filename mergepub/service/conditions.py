"""Conditional requests (RFC 9110, section 13) on versions: entity tags, and what a write builds on. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mergepub.service.labels import parse_number
from mergepub.service.problems import ProblemError, bad_request, refuse

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\Z')
_EACH = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
# Every character fits in one place only, or a long list that is none would be tried in more ways than anybody can wait.
_TAGS = re.compile(rf"\s*{_EACH.pattern}\s*(?:,\s*(?:{_EACH.pattern}\s*)?)*\Z")
_OURS = re.compile(r"([0-9A-Za-z_-]+)\.([1-9][0-9]{0,15})\Z")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a write builds on: a version number (0: nothing), and the incarnation where a tag named it.

    ``foreign``: a tag was given that is none of ours, so that no version can match it.
    """

    number: int | None
    incarnation: str | None = None
    foreign: bool = False


def etag(incarnation: str, number: int) -> str:
    """The strong entity tag of a version."""
    return f'"{incarnation}.{number}"'


def parse_tags(name: str, value: str) -> list[str]:
    """The entity tags of a list.

    Raises:
        ProblemError: 400, when it is no list of entity tags.
    """
    if not _TAGS.match(value):
        raise bad_request(f'{name} is a list of entity tags such as "abc.5", or *')
    return _EACH.findall(value)


def matches(name: str, value: str | None, tag: str, *, weak: bool) -> bool:
    """Whether ``tag`` stands in the list ``value``; ``*`` is every tag. Weak tags match by weak comparison only."""
    if value is None:
        return False
    if value.strip() == "*":
        return True
    tags = parse_tags(name, value)
    return tag in tags or (weak and f"W/{tag}" in tags)


def expected_version(if_match: str | None, if_none_match: str | None, number: str | None) -> Expected:
    """What a write with these headers builds on; all that are given must say the same.

    Args:
        if_match: ``If-Match``: one entity tag.
        if_none_match: ``If-None-Match``: ``*`` alone, which creates.
        number: ``Mergepub-Expected-Version``.

    Raises:
        ProblemError: 428 where no version is named, 400 where one is malformed or they contradict.
    """
    named = [_from_tag(if_match), _from_absence(if_none_match), _from_number(number)]
    given = [each for each in named if each is not None]
    if not given:
        raise _unconditional()
    numbers = {each.number for each in given if not each.foreign}
    if len(numbers) > 1:
        raise bad_request("the preconditions contradict each other: they name different versions")
    return given[0]  # a tag comes first: it says most


def _unconditional() -> ProblemError:
    return refuse(
        428,
        "precondition-required",
        "name the version that this write builds on: If-Match with its ETag, or Mergepub-Expected-Version; to create,"
        " If-None-Match: * or Mergepub-Expected-Version: 0",
    )


def _from_tag(value: str | None) -> Expected | None:
    if value is None or value.strip() == "*":  # * names no version to build on
        return None
    tags = parse_tags("If-Match", value)
    if len(tags) != 1:
        raise bad_request("If-Match on a write names one version: the one that it builds on")
    tag = _TAG.match(tags[0])
    ours = _OURS.match(tag[2]) if tag and not tag[1] else None
    if ours is None:
        return Expected(None, foreign=True)
    return Expected(int(ours[2]), ours[1])


def _from_absence(value: str | None) -> Expected | None:
    if value is None:
        return None
    if value.strip() != "*":
        raise bad_request("If-None-Match on a write is * alone, which means: create")
    return Expected(0)


def _from_number(value: str | None) -> Expected | None:
    return None if value is None else Expected(parse_number("Mergepub-Expected-Version", value.strip()))
