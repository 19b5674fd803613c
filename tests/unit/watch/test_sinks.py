"""Where a log goes while it is written: JSON lines, TensorBoard, the terminal."""

import io
import json
import sys
import threading

import pytest
import tensorflow as tf
import torch
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import pullback as pb
from pullback.watching.sinks.live import Live
from pullback.watching.sinks.tensorboard import TensorBoard


def train(to, steps=3, **options):
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    with pb.watch(to=to, **options) as log:
        for _ in range(steps):
            (pb.watch(x, "squared").square().sum() / 2).backward()
        pb.watch(x, "broken").backward(torch.tensor([1.0, float("nan")]))
    return log


def test_lines_of_json(tmp_path):
    file = tmp_path / "gradients.jsonl"
    log = train(str(file), every=2)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["name"], line["step"]) for line in lines] == [("squared", 0), ("squared", 2), ("broken", 0)]
    assert lines[0]["norm"] == 5.0
    assert lines[0]["decades"] == list(log["squared"][0].decades)
    assert lines[-1]["nan"] == 1


def scalars(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return events


def test_a_missing_tensorboard_is_told_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(pb.errors.HostError, match="pip install tensorboard"):
        pb.watch(to=tmp_path / "run")


def test_tensorboard_by_tensorflow(tmp_path):
    train(tmp_path / "run")
    events = scalars(tmp_path / "run")
    norms = [tf.make_ndarray(event.tensor_proto).item() for event in events.Tensors("norm/squared")]
    assert norms == [5.0, 5.0, 5.0]
    histogram = tf.make_ndarray(events.Tensors("sizes/squared")[0].tensor_proto)
    assert histogram[:, 2].sum() == 2


def test_tensorboard_by_pytorch(tmp_path, monkeypatch):
    monkeypatch.setattr("pullback.watching.sinks.tensorboard.WRITERS", ("torch",))
    train(TensorBoard(tmp_path / "run"))
    events = scalars(tmp_path / "run")
    assert [event.value for event in events.Scalars("norm/squared")] == [5.0, 5.0, 5.0]
    assert events.Histograms("sizes/squared")[0].histogram_value.num == 2


def test_live_in_the_terminal():
    shown = io.StringIO()
    train(Live(Console(file=shown, force_terminal=True, width=120)))
    assert "squared" in shown.getvalue()
    assert "broken" in shown.getvalue()


def test_several_at_once_and_threads_end(tmp_path):
    before = threading.active_count()
    train([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert (tmp_path / "a.jsonl").read_text() == (tmp_path / "b.jsonl").read_text() != ""
    assert threading.active_count() == before


@pytest.mark.parametrize("to", ["gradients.csv", 3])
def test_what_is_no_sink_is_refused_in_words(to):
    with pytest.raises(pb.errors.OptionError, match=r"\.jsonl"):
        pb.watch(to=to)


def test_a_log_shows_itself_in_a_notebook():
    log = train(())
    assert log._repr_html_().startswith("<table>")
    assert log._repr_svg_().startswith("<svg")
