"""A host for `taped`, as `CONTRIBUTING.md` says: executing, and the facts of a tensor."""

import numpy as np
import taped

from pullback.hosts.base import Host
from pullback.hosts.specs import Spec


class TapedHost(Host):
    name = "Taped"

    def owns(self, kind):
        return issubclass(kind, taped.Taped)

    def tensor(self, value, *, where, argument):
        return value if isinstance(value, taped.Taped) else taped.Taped(value)

    def spec(self, tensor):
        kinds = {"f": "floating", "c": "complex", "i": "integer"}
        array = tensor.value
        return Spec(array.shape, array.dtype.name, kinds.get(array.dtype.kind, "other"))

    def conform(self, cotangent, like):
        return taped.Taped(np.asarray(getattr(cotangent, "value", cotangent)).astype(like.value.dtype))

    def zeros(self, like):
        return taped.Taped(np.zeros(like.shape, like.dtype))

    def apply(self, operation, tensors):
        outputs, pull = operation.forward([taped.Taped(x.value) for x in tensors])
        given = [None] * len(outputs)

        def back(place):
            def pulled(dy):
                cotangents = [*given]
                cotangents[place] = taped.Taped(np.broadcast_to(dy, outputs[place].value.shape))
                return [None if c is None else c.value for c in pull(cotangents).inputs]

            return pulled

        return [taped.Taped(y.value, tensors, back(i)) for i, y in enumerate(outputs)]


HOST = TapedHost()
