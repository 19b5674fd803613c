"""A file is replaced whole or not at all; it keeps its mode, and nothing is left beside it."""

import os
import stat

import pytest

from pullback import atomic


def test_the_text_changes_and_the_mode_does_not(tmp_path):
    path = tmp_path / "rules.py"
    path.write_bytes(b"old\r\n")
    path.chmod(0o754)
    atomic.replace(str(path), b"new\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert os.listdir(tmp_path) == ["rules.py"]


def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    (tmp_path / "as_usual").touch()
    atomic.replace(str(tmp_path / "new"), b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "as_usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").write_bytes(b"old")
    (tmp_path / "link").symlink_to("there")
    atomic.replace(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("ended", [OSError, KeyboardInterrupt])
def test_what_ends_it_in_the_middle_leaves_the_old_text(tmp_path, monkeypatch, step, ended):
    path = tmp_path / "rules.py"
    path.write_bytes(b"old")

    def fails(*arguments):
        raise ended

    with monkeypatch.context() as m:
        m.setattr(os, step, fails)
        with pytest.raises(ended):
            atomic.replace(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["rules.py"]
