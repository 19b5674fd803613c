"""A function that can run off its end is told from one that says what it returns, by its code alone."""

import functools
import warnings

import pytest

from pullback.endings import _read, runs_off

PROGRAM = """
def branch(dy):
    if dy:
        return dy

def elif_branch(dy):
    if dy == 1:
        return dy
    elif dy == 2:
        return 2 * dy

def no_return(dy):
    print(dy)

def loop(dy):
    for part in dy:
        return part

def loop_left(dy):
    while True:
        if dy:
            break
        return dy

def caught(dy):
    try:
        return dy
    except ValueError:
        print(dy)

def some_cases(dy):
    match dy:
        case 1:
            return dy

def after_a_block(dy):
    with dy:
        print(dy)

def checked(dy):
    if dy:
        return dy
    assert not dy

def none(dy):
    return None

def bare(dy):
    if dy:
        return
    return dy

def else_none(dy):
    if dy:
        return dy
    else:
        return None

def conditional(dy):
    return dy if dy else None

def endless(dy):
    while True:
        if dy:
            return dy

def endless_inside(dy):
    while True:
        for part in dy:
            break
        return part

def loop_else(dy):
    for part in dy:
        return part
    else:
        return None

def every_case(dy):
    match dy:
        case 1:
            return dy
        case _:
            return None

def finally_none(dy):
    try:
        print(dy)
    finally:
        return None

def in_a_block(dy):
    with dy:
        return

def raised(dy):
    if dy:
        return dy
    raise ValueError(dy)

def impossible(dy):
    if dy:
        return dy
    assert False

def yields(dy):
    yield dy

unnamed = lambda dy: None
"""
OPEN = [
    *("branch", "elif_branch", "no_return", "loop", "loop_left", "caught", "some_cases", "after_a_block"),
    "checked",
]


@pytest.fixture
def defined(tmp_path):
    """Give the functions of the program, with or without a source that can be read."""

    def define(with_source):
        path = tmp_path / "program.py"
        path.write_text(PROGRAM, encoding="utf-8")
        space = {}
        _read.cache_clear()  # code is known by its content, and both have the same
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python 3.14, of a `return` in a `finally`
            code = compile(PROGRAM, str(path) if with_source else "<typed>", "exec")
        exec(code, space)
        return {name: value for name, value in space.items() if callable(value)}

    yield define
    _read.cache_clear()


def test_an_open_end_is_found_in_the_source(defined):
    assert [name for name, function in defined(True).items() if runs_off(function)] == OPEN


def test_without_a_source_none_that_was_written_is_believed(defined):
    found = [name for name, function in defined(False).items() if runs_off(function)]
    assert set(found) <= set(OPEN)


def test_the_function_behind_a_wrapper_is_read(defined):
    functions = defined(True)
    for name in ("branch", "none"):
        inner = functions[name]

        @functools.wraps(inner)
        def wrapper(dy, inner=inner):
            return inner(dy)

        assert runs_off(wrapper) == runs_off(functools.partial(inner)) == (name == "branch")
        assert runs_off(type("Object", (), {"method": inner})().method) == (name == "branch")
        assert runs_off(type("Callable", (), {"__call__": inner})()) == (name == "branch")


def test_a_builtin_and_a_class_are_left_alone():
    assert not any(map(runs_off, [print, len, int, dict]))
