from uuid import UUID

from rageval_spec.exchange.shared.identities import make_hex, make_uuid


def test_ids_depend_on_every_part_and_on_nothing_else() -> None:
    assert make_hex("a", "b") == make_hex("a", "b") != make_hex("ab", "") != make_hex("", "ab")
    assert len(make_hex("a", digits=16)) == 16


def test_uuids_are_of_a_version_for_own_schemes() -> None:
    made = UUID(make_uuid("a", "b"))
    assert (made.version, made.variant) == (8, "specified in RFC 4122")
    assert make_uuid("a", "b") != make_uuid("a", "c")
