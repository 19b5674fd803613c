"""Another gradient for something that exists: a function, a value in a graph, a loss, a model.

One file is one replacement. A replacement changes what flows backward and never the value. Each carries its
intent, and its docstring says what its second derivative and its forward mode are.
"""
