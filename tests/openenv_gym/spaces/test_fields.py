"""The codecs that a JSON Schema alone asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Sequence

from openenv_gym.errors import ValueMappingError
from openenv_gym.spaces import UnicodeText, codec_for
from openenv_gym.spaces.fields import BooleanCodec, EnumCodec, FieldCodec, FieldsCodec, JsonTextCodec, UnionCodec
from openenv_gym.spaces.values import SequenceCodec


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


def test_a_listed_text_may_be_given_itself_and_the_message_lists_what_there_is() -> None:
    codec = EnumCodec(["red", "blue", 3, None])
    assert [codec.encode(sample) for sample in ("blue", 1, np.str_("red"), 2, None)] == ["blue", "blue", "red", 3, None]
    for wrong in ("green", 4, -1, 1.5, "3", [1]):
        with pytest.raises(ValueMappingError, match="0: 'red', 1: 'blue', 2: 3, 3: null"):
            codec.encode(wrong)


COLOR, COUNT = EnumCodec(["red", "blue"]), codec_for(Box(-np.inf, np.inf, (), np.int64))
NUMBERS = EnumCodec([1, 2])
LIST = SequenceCodec(Sequence(COUNT.space), COUNT)


@pytest.mark.parametrize(
    ("parts", "sample", "json"),
    [
        ([COUNT], 0, 0),
        ([COUNT], 5, 5),
        ([COUNT], None, None),
        ([COUNT], np.int64(5), 5),
        ([COLOR], "blue", "blue"),
        ([COLOR], 1, "blue"),
        ([COLOR], None, None),
        ([COLOR, COUNT], "blue", "blue"),
        ([NUMBERS], 2, 2),
        ([EnumCodec([False, True])], np.bool_(True), True),
        ([codec_for(UnicodeText())], "[0, 1]", "[0, 1]"),
        ([LIST], [0, 5], [0, 5]),
        ([LIST], [1, 2, 3], [1, 2, 3]),
        ([BooleanCodec(COUNT), codec_for(UnicodeText())], True, True),
        ([JsonTextCodec(objects=True)], '{"a": 1}', {"a": 1}),
        ([FieldsCodec({"a": COUNT}, {})], {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_of_a_union_needs_no_index_where_one_thing_can_be_meant(parts: Any, sample: Any, json: Any) -> None:
    written = UnionCodec([EnumCodec([None]), *parts]).encode(sample)
    assert (written, type(written)) == (json, type(json))


@pytest.mark.parametrize(
    ("parts", "sample"),
    [
        ([NUMBERS], 1),  # the value 1, or that of index 1
        ([COLOR, COUNT], 1),
        ([COUNT], True),
        ([BooleanCodec(COUNT)], "5"),
        ([JsonTextCodec(objects=False)], 5),
        ([COUNT], "5"),
        ([COUNT, LIST], [1, 5]),
        ([codec_for(UnicodeText()), JsonTextCodec(objects=False)], "[1]"),
        ([codec_for(UnicodeText())], 5),
    ],
)
def test_what_could_mean_two_things_or_none_is_refused_with_the_alternatives(parts: Any, sample: Any) -> None:
    codec = UnionCodec([EnumCodec([None]), *parts])
    with pytest.raises(ValueMappingError, match=r"pair of index and value of \{0: null"):
        codec.encode(sample)


def test_every_sample_of_a_union_is_written_whatever_else_it_looks_like() -> None:
    codec = UnionCodec([EnumCodec([None]), COUNT, LIST, NUMBERS])
    codec.space.seed(1)
    for _ in range(50):
        index, value = sample = codec.space.sample()
        assert codec.encode(sample) == codec._parts[index].encode(value)


def test_fields_that_are_not_required_may_be_left_out_but_not_misspelt() -> None:
    codec = FieldsCodec({"a": COUNT, "b": COUNT, "c": COUNT}, {}, required=["b"])
    assert codec.encode({"c": 3, "b": 2}) == {"b": 2, "c": 3}
    assert codec.encode({"b": 2}) == {"b": 2}
    for wrong, words in (({"a": 1}, "no 'b'"), ({"b": 1, "d": 1}, "an unknown 'd'"), ({}, "no 'b'")):
        with pytest.raises(ValueMappingError, match=f"got {words}$"):
            codec.encode(wrong)
    with pytest.raises(ValueMappingError, match="no 'a'"):
        FieldsCodec({"a": COUNT}, {}).encode({})


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


@pytest.mark.parametrize(("pair", "path"), [((0, 5), "$[1]"), ((1, 5), "$[1]"), ((1, [5, "x"]), "$[1][1]")])
def test_a_tuple_of_two_that_begins_with_an_index_is_a_pair_and_no_list(pair: Any, path: str) -> None:
    with pytest.raises(ValueMappingError) as caught:
        UnionCodec([EnumCodec([None]), LIST]).encode(pair)
    assert caught.value.path == path


def test_a_list_that_is_neither_a_pair_nor_a_value_is_told_where_the_pair_is_wrong() -> None:
    with pytest.raises(ValueMappingError) as caught:
        UnionCodec([EnumCodec([None]), COUNT]).encode([1, "x"])
    assert caught.value.path == "$[1]"
