"""A module is acted on when it is imported, and not before."""

import sys

from pullback.record.imports import when_imported


def test_acts_when_the_import_comes(tmp_path, monkeypatch):
    (tmp_path / "late_module.py").write_text("value = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    withdraw = when_imported("late_module", lambda module: seen.append(module.value))
    assert seen == []
    import late_module

    assert seen == [1]
    assert type(late_module.__spec__.loader).__module__ != "pullback.record.imports"
    withdraw()
    withdraw()
    del sys.modules["late_module"]


def test_acts_at_once_on_what_is_there():
    seen = []
    when_imported("sys", seen.append)()
    assert seen == [sys]


def test_withdrawn_orders_are_forgotten(tmp_path, monkeypatch):
    (tmp_path / "never_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    when_imported("never_module", seen.append)()
    import never_module

    assert seen == []
    del sys.modules[never_module.__name__]
