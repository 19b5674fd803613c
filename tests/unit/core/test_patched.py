"""Attributes that are changed for a block stand afterwards as they stood before."""

import pytest

from pullback.patched import patched


class Above:
    def inherited(self):
        return "above"


class Here(Above):
    @staticmethod
    def own():
        return "own"


def test_inside_the_block_the_others_are_there_and_afterwards_the_old_ones():
    own = vars(Here)["own"]
    with patched(Here, own=lambda: "other", inherited=lambda self: "other"):
        assert (Here.own(), Here().inherited()) == ("other", "other")
    assert vars(Here)["own"] is own  # still a static method
    assert "inherited" not in vars(Here)
    assert Here().inherited() == "above"


def test_an_error_puts_them_back_too():
    with pytest.raises(KeyError), patched(Here, own=None):
        raise KeyError
    assert Here.own() == "own"
