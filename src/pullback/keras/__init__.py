"""What Keras must know to load a `.keras` file: the layer of a rule, losses, overridden models, ready rules.

A replacement is found by its rule. Ready rules have a package of their own: `pb.round` is not `pb.ops.round`.
"""

import sys

import keras

from pullback import ops
from pullback.hosts.keras.model import OverriddenModel
from pullback.keras.layer import RuleLayer
from pullback.keras.loss import RuleLoss
from pullback.rule import Rule
from pullback.watching.watch import watch

__all__ = ["OverriddenModel", "RuleLayer", "RuleLoss"]

for _name, _module in list(sys.modules.items()):
    if _name.startswith("pullback.replace."):
        for _function in list(vars(_module).values()):
            if isinstance(getattr(_function, "rule", None), Rule):
                keras.saving.register_keras_serializable(package="pullback")(_function)
for _function in {getattr(ops, _name) for _name in ops.__all__}:
    keras.saving.register_keras_serializable(package="pullback.ops")(_function)
keras.saving.register_keras_serializable(package="pullback")(watch)
