"""How many bytes a tape or a graph keeps of a call, beyond the inputs of it."""

import gc

import tensorflow as tf
import torch


def of_tensorflow(f, *inputs):
    """Count the tensors that a tape holds after the call, when nobody else does."""

    def alive():
        gc.collect()
        kind = tf.__internal__.EagerTensor
        return {tensor._id: tensor for tensor in gc.get_objects() if issubclass(type(tensor), kind)}

    f(*inputs)  # what a first call sets up
    before = set(alive())
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = f(*inputs)  # dropped while the tape records, it would take its trace along
    del output
    kept = [tensor for i, tensor in alive().items() if i not in before]
    del tape
    return sum(tensor.shape.num_elements() * tensor.dtype.size for tensor in kept)


def of_torch(f, *inputs):
    """Count what the graph saves, storage by storage."""
    saved = {}
    known = {x.untyped_storage().data_ptr() for x in inputs}

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    f(*inputs)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = f(*inputs)
    del output
    return sum(size for pointer, size in saved.items() if pointer not in known)
