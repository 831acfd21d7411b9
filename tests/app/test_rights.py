"""Whom a setting names, and who somebody is by what a provider says."""

from __future__ import annotations

from typing import Any

import pytest

from crag_core.app.access import NotAllowed, People, address_in, check_age, read_people, sign_in_of
from crag_core.app.config import load
from crag_core.base.errors import BadRecord

ANN = "ann@example.org"


VARIABLES = ("CRAG_PEOPLE", "CRAG_ADMINISTRATORS")


def people(text: str) -> People:
    return read_people("CRAG_PEOPLE", text)


@pytest.mark.parametrize(
    ("text", "address", "is_named"),
    [
        ("*", ANN, True),
        ("*", "anybody@elsewhere.example", True),
        ("nobody", ANN, False),
        ("NOBODY", "nobody@example.org", False),
        (ANN, ANN, True),
        (ANN, "Ann@EXAMPLE.org", True),
        ("Ann@Example.Org", ANN, True),
        (ANN, "joann@example.org", False),
        (ANN, "ann@example.org.evil.example", False),
        (ANN, "ann@mail.example.org", False),
        ("@example.org", ANN, True),
        ("@Example.ORG", "bob@example.org", True),
        ("@example.org", "ann@mail.example.org", False),
        ("@example.org", "ann@notexample.org", False),
        ("@example.org", "ann@evil.example@example.org", False),
        ("@example.org", "example.org", False),
        ("@example.org", "@example.org", False),
        (f" {ANN} , @example.net ", "bob@example.net", True),
        (f"{ANN},@example.net", "bob@example.org", False),
        ("bok@example.org", "bo\u212a@example.org", False),  # the Kelvin sign is no k
        ("@xn--bcher-kva.example", "ann@xn--bcher-kva.example", True),
        ("jörg@example.org", "jörg@example.org", True),
    ],
)
def test_a_list_includes_those_who_are_named(text: str, address: str, is_named: bool) -> None:
    assert people(text).include(address) is is_named


@pytest.mark.parametrize(
    "text",
    ["ann", "example.org", "ann@", "@", "*@example.org", f"{ANN},", f",{ANN}", f"{ANN} bob@example.org", f"{ANN};@b.c",
     f"*,{ANN}", f"nobody,{ANN}", "", "everybody", "@.", "<ann@example.org>", "a@b@c"],
)  # fmt: skip
def test_an_entry_that_can_mean_nobody_is_refused_by_its_variable(text: str) -> None:
    with pytest.raises(BadRecord, match=r"CRAG_PEOPLE: expected .*, found") as found:
        people(text)
    assert "@example.org" in found.value.hint and "nobody" in found.value.hint


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_wrong_list_keeps_the_application_from_starting(variable: str) -> None:
    with pytest.raises(BadRecord, match=f"{variable}: "):
        load({variable: "ann at example.org"})


@pytest.mark.parametrize("variable", ["CRAG_MAY_ENTER", "CRAG_MAY_SET_UP"])
def test_a_list_of_an_earlier_version_is_refused_rather_than_passed_over(variable: str) -> None:
    with pytest.raises(BadRecord, match=f"{variable}: not a setting any more") as found:
        load({variable: ANN})
    assert all(name in found.value.hint for name in VARIABLES)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (ANN, "Only ann@example.org may add documents."),
        ("@example.org", "Only everybody of example.org may add documents."),
        (f"{ANN},@b.example", "Only ann@example.org and everybody of b.example may add documents."),
        ("nobody", "Nobody may add documents here."),
        ("a@b.c,d@b.c,e@b.c,f@b.c,g@b.c", "Only a@b.c, d@b.c, e@b.c and 2 more may add documents."),
    ],
)
def test_the_refusal_says_who_may(text: str, line: str) -> None:
    assert people(text).refusal("add documents") == line


# Who somebody is


@pytest.mark.parametrize("said", [{}, {"email_verified": True}, {"email_verified": "true"}])
def test_an_address_that_is_not_denied_is_taken(said: dict[str, Any]) -> None:
    assert address_in({"email": ANN, **said}) == ANN


@pytest.mark.parametrize("said", [False, "false", "False", 0, None, "", [], "yes"])
def test_an_address_that_is_not_verified_is_refused(said: object) -> None:
    with pytest.raises(NotAllowed, match=r"has not verified that ann@example\.org is yours"):
        address_in({"email": ANN, "email_verified": said})


@pytest.mark.parametrize("claims", [{}, {"email": ""}, {"email": None}, {"name": ANN}, {"preferred_username": ANN}])
def test_an_identity_without_an_address_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(NotAllowed, match=r"Expected an e-mail address .*, found none"):
        address_in(claims)


@pytest.mark.parametrize("address", ["ann", [ANN], 7, "ann@example.org,bob@example.org", "*", "ann@ex ample.org"])
def test_what_is_not_one_address_is_refused(address: object) -> None:
    with pytest.raises(NotAllowed, match="found something else"):
        address_in({"email": address})


def test_a_sign_in_holds_for_thirty_days() -> None:
    check_age({"iat": 1_000_000}, 1_000_000 + 30 * 86_400)
    for before in (1_000_000, -(10**400)):
        with pytest.raises(NotAllowed, match="more than 30 days ago"):
            check_age({"iat": before}, 1_000_001 + 30 * 86_400)


@pytest.mark.parametrize(
    "claims",
    [{}, {"iat": None}, {"iat": "1000000"}, {"iat": True}, {"iat": float("nan")}, {"iat": 1_000_301}, {"iat": 1e300}],
)
def test_a_sign_in_without_a_time_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(NotAllowed, match="Expected the time of the sign-in"):
        check_age(claims, 1_000_000)


def test_two_sign_ins_of_one_person_have_different_names() -> None:
    first = {"iss": "https://a.example", "sub": "1", "iat": 5, "nonce": "x", "email": ANN}
    assert sign_in_of(first) == sign_in_of({**first, "email": "other@example.org"})
    for other in ({"iss": "https://b.example"}, {"sub": "2"}, {"iat": 6}, {"nonce": "y"}):
        assert sign_in_of({**first, **other}) != sign_in_of(first)
