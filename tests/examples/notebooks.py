"""Make a notebook of a program: its first words as text, each of its parts as a cell, and the picture last.

    python tests/examples/notebooks.py FOLDER PROGRAM...

A notebook is never edited: it is written anew from the program.
"""

import ast
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


def cells(text: str) -> list:
    """Give the cells of a program; what it does when it is run as a script becomes the last one."""
    tree = ast.parse(text)
    lines = text.splitlines()
    words = ast.get_docstring(tree).split("\n\n", 1)
    found = [new_markdown_cell(f"# {words[0]}\n\n" + "\n\n".join(words[1:]))]
    parts: list[list[str]] = [[]]
    end = tree.body[0].end_lineno
    for before, node in zip(tree.body, tree.body[1:]):
        if isinstance(node, ast.If):
            break
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) or isinstance(before, ast.FunctionDef):
            parts.append([])
        # what stands above a part, a comment for instance, goes with it
        parts[-1] += lines[end : first - 1] + lines[first - 1 : node.end_lineno]
        end = node.end_lineno
    found += [new_code_cell("\n".join(part).strip("\n")) for part in parts if any(part)]
    return [*found, new_code_cell("result = main()"), new_code_cell('picture(result, "picture.png")')]


def main(folder: str, *programs: str) -> None:
    """Write the notebooks."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for program in map(Path, programs):
        notebook = new_notebook(cells=cells(program.read_text(encoding="utf-8")))
        nbformat.validate(notebook)
        nbformat.write(notebook, Path(folder) / f"{program.stem}.ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
