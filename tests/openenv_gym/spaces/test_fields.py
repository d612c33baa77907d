"""The codecs that a JSON Schema alone asks for."""

from __future__ import annotations

import pytest
from gymnasium.spaces import Dict, Discrete, OneOf

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import UnicodeText, codec_for
from openenv_gym.spaces.fields import BooleanCodec, EnumCodec, FieldCodec, FieldsCodec, JsonTextCodec, UnionCodec


def test_an_enumeration_is_known_by_place_and_a_repeated_value_by_its_first() -> None:
    codec = EnumCodec(["a", "b", "a"])
    assert codec.space == Discrete(3)
    assert [codec.encode(index) for index in range(3)] == ["a", "b", "a"]
    assert codec.decode_member("a") == 0
    with pytest.raises(ValueMappingError, match="'b'"):
        codec.decode("c")


def test_a_long_enumeration_is_not_printed_whole() -> None:
    with pytest.raises(ValueMappingError, match="…") as caught:
        EnumCodec(list(range(100))).decode("x")
    assert len(str(caught.value)) < 400


def test_true_and_false_are_read_as_numbers_where_allowed() -> None:
    codec = BooleanCodec(codec_for(Discrete(2)))
    assert codec.decode_member(True) == 1
    assert codec.encode(1) == 1


def test_json_text_is_checked_for_its_length() -> None:
    codec = JsonTextCodec(objects=False)
    assert codec.space == UnicodeText()
    assert codec.decode_member([1]) == "[1]"
    with pytest.raises(ValueMappingError, match="characters"):
        codec.decode_member("x" * 1_048_576)


def test_a_union_has_no_index_on_the_wire() -> None:
    codec = UnionCodec([EnumCodec([None]), codec_for(UnicodeText(3))])
    assert codec.space == OneOf([Discrete(1), UnicodeText(3)])
    assert codec.encode((1, "abc")) == "abc"
    assert codec.decode_member(None) == (0, 0)


def test_fields_are_checked_and_defaulted() -> None:
    codec = FieldsCodec({"a": codec_for(Discrete(2)), "b": codec_for(Discrete(2))}, {"b": 1})
    assert codec.space == Dict([("a", Discrete(2)), ("b", Discrete(2))])
    assert codec.decode({"a": 0, "c": 9}) == {"a": 0, "b": 1}
    with pytest.raises(ValueMappingError) as caught:
        codec.decode_member({"a": 5})
    assert caught.value.path == "$.a"


def test_one_field_stands_for_its_object() -> None:
    codec = FieldCodec("a", codec_for(Discrete(2)), {})
    assert (codec.encode(1), codec.decode_member({"a": 1})) == ({"a": 1}, 1)
    with pytest.raises(ValueMappingError) as caught:
        codec.decode_member({"a": 2})
    assert caught.value.path == "$.a"


def test_the_one_field_is_read_past_others_from_its_default_or_not_at_all() -> None:
    codec = FieldCodec("a", codec_for(Discrete(3)), {"a": 2})
    assert codec.decode({"b": None, "a": 1}) == 1
    assert codec.decode({}) == 2
    for wrong, path in (({"a": "x"}, "$.a"), ([], "$")):
        with pytest.raises(ValueMappingError) as caught:
            codec.decode(wrong)
        assert caught.value.path == path
    with pytest.raises(ValueMappingError) as caught:
        codec.encode("x")
    assert caught.value.path == "$.a"
    with pytest.raises(ValueMappingError, match="no 'a'"):
        FieldCodec("a", codec_for(Discrete(3)), {}).decode({"b": 1})


def test_the_one_field_is_read_without_a_copy_of_the_object() -> None:
    codec = FieldCodec("a", codec_for(Discrete(3)), {})
    codec._fields = None
    assert codec.decode_member({"a": 1, "b": 2}) == 1
    assert codec.encode(2) == {"a": 2}
