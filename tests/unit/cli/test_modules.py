"""`pullback check mylib.losses:focal`, and every module of a folder or a package."""

import pytest


@pytest.fixture(scope="module")
def library(project):
    project.write("lib/mylib/__init__.py", "")
    project.write(
        "lib/mylib/losses.py",
        """
        import tensorflow as tf
        import pullback as pb
        from .shapes import doubled

        @tf.custom_gradient
        @pb.example(tf.constant([[0.5, 2.0]]), tf.constant([0]))
        def focal(logits, labels):
            def grad(dy):
                hot = tf.one_hot(labels, 2, dtype=logits.dtype)
                return dy[:, None] * (tf.nn.softmax(logits) - hot), None
            return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), grad

        class Holder:
            @staticmethod
            @pb.custom_gradient
            def halved(x):
                return x / 2, lambda dy: dy

            @tf.custom_gradient
            def bound(self, x):
                return x, lambda dy: dy

        def plain(x):
            return tf.sin(x)

        kept = lambda x: (x, lambda dy: dy)
        TABLE = [tf.grad_pass_through(tf.round), pb.custom_gradient(kept)]

        @tf.custom_gradient
        def impossible(a, b, c, d, e):
            raise ValueError("not with these")
        """,
    )
    project.write(
        "lib/mylib/shapes.py",
        """
        import tensorflow as tf

        @tf.custom_gradient
        def doubled(x: tf.TensorSpec([2, 3], tf.float32)):
            x = tf.ensure_shape(x, [2, 3])
            return x * 2, lambda dy: dy * 2
        """,
    )
    project.write("lib/mylib/broken.py", "import not_there_at_all")
    project.write("lib/mylib/crash.py", "import os\nos.kill(os.getpid(), 11)")
    project.write("lib/mylib/__main__.py", "raise SystemExit('never imported')")
    return project


def test_a_folder_is_checked_module_by_module(library):
    code, out, said = library.check("lib")
    assert code == 2
    table = out.split("\n\n")[-2]
    assert [line.split()[0] for line in table.splitlines()[2:]] == [
        "focal",
        "Holder.halved",
        "tf.grad_pass_through(round)",
        "<lambda>",
        "doubled",
    ]
    assert "Holder.halved (lib/mylib/losses.py:15): wrong" in out
    assert "5 rules: 3 right, 1 as declared, 1 wrong" in out
    lines = "\n".join(said)
    assert "lib/mylib/broken.py could not be imported: ModuleNotFoundError" in lines
    assert "lib/mylib/crash.py crashed (SIGSEGV) while it was imported" in lines
    assert "no inputs were found with which `impossible` works" in lines
    assert "Holder.bound (lib/mylib/losses.py:20) is a method" in lines
    assert len(said) == 4


@pytest.mark.parametrize(
    ("target", "verdict", "code"), [("losses:plain", "1 right", 0), ("losses:Holder.halved", "1 wrong", 1)]
)
def test_one_function_is_checked(project, monkeypatch, target, verdict, code):
    project.write("one/single/__init__.py", "")
    project.write(
        "one/single/losses.py",
        """
        import jax, jax.numpy as jnp
        import pullback as pb

        class Holder:
            @staticmethod
            @pb.custom_gradient
            def halved(x):
                return x / 2, lambda dy: dy

        def plain(x):
            return jnp.sin(x)
        """,
    )
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "one"))
    found, out, said = project.check(f"single.{target}")
    assert (found, said) == (code, [])
    assert verdict in out


def test_a_function_of_a_file_and_a_package_are_targets(project, monkeypatch):
    project.write("other/package/__init__.py", "")
    project.write(
        "other/package/shapes.py",
        """
        import jax

        @jax.custom_jvp
        def doubled(x: jax.ShapeDtypeStruct((2, 3), "float32")):
            assert x.shape == (2, 3)
            return x * 2

        doubled.defjvps(lambda t, out, x: t * 2)
        """,
    )
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "other"))
    code, out, said = project.check("other/package/shapes.py:doubled", "package.shapes")
    assert (code, said) == (0, [])
    assert "1 rule: 1 right" in out


def test_what_a_framework_logs_at_its_import_is_kept_still_and_the_rest_is_not(project):
    logs = (
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
        "I0000 00:00:1794815617.560536     791 port.cc:153] custom operations are on.\n"
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow.\n"
    )
    project.write("noisy/__init__.py", f"import os\nos.write(2, {logs!r}.encode() + b'mine\\n')\n")
    for target in ("noisy", "noisy/", "noisy:none"):
        said = project.run("check", target).stderr.splitlines()
        assert "mine" in said, target
        assert [line for line in said if line != "mine" and not line.startswith("pullback: ")] == []
