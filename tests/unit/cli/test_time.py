"""A budget in CPU time, and several processes: what is proven stays, the rest goes on, in the same order."""

import json

RULES = """
import itertools, jax, jax.numpy as jnp

def rule(name, factor, trap=lambda x, name: None):
    def power(x):
        trap(x, name)
        return x**3, lambda dy: factor * x**2 * dy

    power.__name__ = power.__qualname__ = name
    return jax.custom_gradient(power)

def endless(x, name):
    if x.shape != (2,):  # the checker's: the program has no other
        sum(itertools.repeat(0))  # not a line of Python: no signal is heard here
"""


def test_a_body_that_never_returns_keeps_what_was_proven_and_the_rest_goes_on(project):
    project.write(
        "endless.py",
        RULES + "Endless, Wrong = rule('Endless', 3, endless), rule('Wrong', -3)\n"
        "Endless(jnp.ones(2)), Wrong(jnp.ones(2))\n",
    )
    code, out, said = project.check("endless.py", "--budget", "5", "--order", "1", "--json", "endless.json")
    rules = json.loads((project.folder / "endless.json").read_text(encoding="utf-8"))["rules"]
    assert [(rule["name"], rule["verdict"]) for rule in rules] == [("Endless", "right"), ("Wrong", "wrong")]
    assert "Endless  right, not finished" in out
    assert "budget: it did not return within its budget" in out
    assert (code, said) == (1, [])


def test_several_processes_find_the_same_in_the_same_order(project):
    project.write(
        "many.py",
        RULES
        + """
A, B, C = rule("A", 3), rule("B", -3), rule("C", 3)
print("imported", __name__)
if __name__ == "__main__":
    D = rule("D", -3)  # no other process can build it
    for one in (A, B, C, D):
        one(jnp.ones(2))
""",
    )
    project.write("none.py", "print('nothing')")
    found = []
    for jobs in ("1", "3"):
        code, out, said = project.check("many.py", "none.py", "-j", jobs, "--order", "1")
        found.append((code, out, said))
    assert found[0] == found[1]
    code, out, said = found[0]
    assert code == 2
    assert out.startswith("imported __main__\nnothing\n")
    table = out.split("\n\n")[-2].splitlines()[2:]
    assert [line.split()[:2] for line in table] == [
        ["A", "right"],
        ["B", "wrong:"],
        ["C", "right"],
        ["D", "wrong:"],
    ]
    assert said == ["pullback: no custom gradient to check: none.py uses none"]
